_base_ = './mask-rcnn_fpn.py'
model = dict(
    backbone=dict(type='mmlinattn.SwinTransformer', arch='tiny', drop_path_rate=0.2),
    neck=dict(in_channels=[96, 192, 384, 768]),
)
