_base_ = ['../datasets/coco_detection_480-800.py', '../schedules/coco_3x.py', '../det_runtime.py']
