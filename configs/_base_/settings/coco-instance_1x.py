_base_ = ['mmdet::_base_/datasets/coco_instance.py', '../schedules/coco_1x.py', '../det_runtime.py']
