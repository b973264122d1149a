_base_ = './mask-rcnn_fpn.py'
model = dict(
    backbone=dict(type='mmlinattn.CSWinTransformer', arch='t24181', drop_path_rate=0.2),
    neck=dict(in_channels=[64, 128, 256, 512]),
)
