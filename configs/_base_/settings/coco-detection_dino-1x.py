_base_ = ['../datasets/coco_detection_ms-crop.py', '../schedules/coco_1x_dino.py', '../det_runtime.py']
