_base_ = './mask-rcnn_swin-t.py'
model = dict(backbone=dict(attention='elfatt'))
