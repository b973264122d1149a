"""Mask R-CNN with DeiT-S24 + FeatScale on COCO, 1x (12 epochs).

No figure in the paper: it trains on ImageNet only.

    python tools/train.py \
        configs/antioversmoothing/mask-rcnn_deit-s24-featscale_fpn_1x_coco.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './mask-rcnn_deit-s12-featscale_fpn_1x_coco.py'

model = dict(backbone=dict(num_layers=24))
