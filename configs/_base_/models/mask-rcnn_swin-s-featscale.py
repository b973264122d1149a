_base_ = './mask-rcnn_swin-s-attnscale.py'
model = dict(backbone=dict(attn_scale=False, feat_scale=True))
