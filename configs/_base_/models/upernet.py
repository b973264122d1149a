"""UperNet. Still to be given: data_preprocessor.size, backbone, in_channels and
num_classes of both heads."""

_base_ = 'mmseg::_base_/models/upernet_r50.py'

model = dict(pretrained=None, backbone=dict(_delete_=True))
