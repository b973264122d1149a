_base_ = './retinanet_softpp-t.py'
model = dict(backbone=dict(arch='small'), neck=dict(in_channels=[192, 384, 768]))
