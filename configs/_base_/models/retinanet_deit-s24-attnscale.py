_base_ = './retinanet_deit-s12-attnscale.py'
model = dict(backbone=dict(num_layers=24))
