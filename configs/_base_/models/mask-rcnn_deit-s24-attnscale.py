_base_ = './mask-rcnn_deit-s12-attnscale.py'
model = dict(backbone=dict(num_layers=24))
