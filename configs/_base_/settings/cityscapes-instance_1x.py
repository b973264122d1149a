_base_ = ['mmdet::_base_/datasets/cityscapes_instance.py', '../schedules/cityscapes-det_1x.py', '../det_runtime.py']
# what the data says of the model, for the leaf
cityscapes_model = dict(roi_head=dict(bbox_head=dict(num_classes=8), mask_head=dict(num_classes=8)))
