_base_ = './mask-rcnn_swin-t.py'
model = dict(backbone=dict(arch='small', attn_scale=True))
