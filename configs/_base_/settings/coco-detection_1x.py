_base_ = ['mmdet::_base_/datasets/coco_detection.py', '../schedules/coco_1x.py', '../det_runtime.py']
