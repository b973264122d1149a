"""Mask R-CNN with Swin-S + FeatScale on COCO, 3x (36 epochs, multi-scale).

No figure in the paper: it trains on ImageNet only.

    python tools/train.py \
        configs/antioversmoothing/mask-rcnn_swin-s-featscale_fpn_3x_coco.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './mask-rcnn_swin-s-attnscale_fpn_3x_coco.py'

model = dict(backbone=dict(attn_scale=False, feat_scale=True))
