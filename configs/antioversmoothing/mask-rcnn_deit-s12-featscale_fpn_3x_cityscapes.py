"""Mask R-CNN with DeiT-S12 + FeatScale on Cityscapes, 3x (24 epochs of 8 repetitions).

No figure in the paper: it trains on ImageNet only.

    python tools/train.py \
        configs/antioversmoothing/mask-rcnn_deit-s12-featscale_fpn_3x_cityscapes.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './mask-rcnn_deit-s12-attnscale_fpn_3x_cityscapes.py'

model = dict(backbone=dict(attn_scale=False, feat_scale=True))
