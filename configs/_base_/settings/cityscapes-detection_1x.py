_base_ = ['mmdet::_base_/datasets/cityscapes_detection.py', '../schedules/cityscapes-det_1x.py', '../det_runtime.py']
# what the data says of the model, for the leaf
cityscapes_model = dict(bbox_head=dict(num_classes=8))
