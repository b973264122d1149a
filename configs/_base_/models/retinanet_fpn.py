"""RetinaNet on the last three maps of a pyramid; P6 is a convolution of C5, as in SOFT's code. Still to be given:
backbone and neck.in_channels."""

_base_ = 'mmdet::_base_/models/retinanet_r50_fpn.py'
pretrained = None
model = dict(backbone=dict(_delete_=True, out_indices=(1, 2, 3)), neck=dict(start_level=0, add_extra_convs='on_input'))
