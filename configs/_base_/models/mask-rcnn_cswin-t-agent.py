_base_ = './mask-rcnn_cswin-t.py'
model = dict(backbone=dict(attention='agent'))
