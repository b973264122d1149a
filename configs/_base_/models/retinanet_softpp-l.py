_base_ = './retinanet_softpp-t.py'
model = dict(backbone=dict(arch='large'), neck=dict(in_channels=[256, 512, 1024]))
