_base_ = './mask-rcnn_softpp-t.py'
model = dict(backbone=dict(arch='large'), neck=dict(in_channels=[128, 256, 512, 1024]))
