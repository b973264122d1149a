_base_ = ['mmdet::_base_/datasets/cityscapes_instance.py', '../schedules/cityscapes-det_3x.py', '../det_runtime.py']
