_base_ = './retinanet_soft-t.py'
model = dict(backbone=dict(arch='medium'), neck=dict(in_channels=[128, 288, 512]))
