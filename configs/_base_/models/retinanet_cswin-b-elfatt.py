_base_ = './retinanet_cswin-t-elfatt.py'
model = dict(backbone=dict(arch='b36292', drop_path_rate=0.6), neck=dict(in_channels=[192, 384, 768]))
