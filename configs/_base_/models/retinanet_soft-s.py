_base_ = './retinanet_soft-t.py'
model = dict(backbone=dict(arch='small'))
