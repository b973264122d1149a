_base_ = './retinanet_softpp-t-linear.py'
model = dict(backbone=dict(arch='micro', drop_path_rate=0.0), neck=dict(in_channels=[64, 96, 160]))
