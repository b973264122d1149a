_base_ = './mask-rcnn_softpp-t-linear.py'
model = dict(backbone=dict(arch='micro', drop_path_rate=0.0), neck=dict(in_channels=[32, 64, 96, 160]))
