"""UperNet for ADE20K at 512 x 512. Still to be given: backbone and in_channels of both heads."""

_base_ = 'mmseg::_base_/models/upernet_r50.py'
pretrained = None
model = dict(
    data_preprocessor=dict(size=(512, 512)),
    pretrained=None,
    backbone=dict(_delete_=True),
    decode_head=dict(num_classes=150),
    auxiliary_head=dict(num_classes=150),
)
