_base_ = './mask-rcnn_soft-t.py'
model = dict(backbone=dict(arch='medium'), neck=dict(in_channels=[64, 128, 288, 512]))
