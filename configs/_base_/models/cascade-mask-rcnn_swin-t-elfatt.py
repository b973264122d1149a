_base_ = 'mmdet::_base_/models/cascade-mask-rcnn_r50_fpn.py'
pretrained = 'https://github.com/SwinTransformer/storage/releases/download/v1.0.0/swin_tiny_patch4_window7_224.pth'
model = dict(
    backbone=dict(_delete_=True, type='mmlinattn.SwinTransformer', arch='tiny', attention='elfatt', drop_path_rate=0.2),
    neck=dict(in_channels=[96, 192, 384, 768]),
)
