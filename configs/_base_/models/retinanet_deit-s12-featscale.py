_base_ = './retinanet_deit-s12-attnscale.py'
model = dict(backbone=dict(attn_scale=False, feat_scale=True))
