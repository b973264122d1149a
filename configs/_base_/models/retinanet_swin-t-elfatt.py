_base_ = './retinanet_swin-t.py'
model = dict(backbone=dict(attention='elfatt'))
