_base_ = './mask-rcnn_swin-t-elfatt.py'
model = dict(backbone=dict(arch='base', drop_path_rate=0.6), neck=dict(in_channels=[128, 256, 512, 1024]))
