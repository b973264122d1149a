_base_ = ['mmdet::_base_/datasets/cityscapes_detection.py', '../schedules/cityscapes-det_1x.py', '../det_runtime.py']
