_base_ = './mask-rcnn_softpp-t.py'
model = dict(backbone=dict(arch='small'), neck=dict(in_channels=[96, 192, 384, 768]))
