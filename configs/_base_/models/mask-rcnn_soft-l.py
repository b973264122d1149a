_base_ = './mask-rcnn_soft-t.py'
model = dict(backbone=dict(arch='large'))
