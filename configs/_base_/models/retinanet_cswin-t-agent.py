_base_ = './retinanet_cswin-t.py'
model = dict(backbone=dict(attention='agent'))
