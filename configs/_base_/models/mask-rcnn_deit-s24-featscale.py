_base_ = './mask-rcnn_deit-s24-attnscale.py'
model = dict(backbone=dict(attn_scale=False, feat_scale=True))
