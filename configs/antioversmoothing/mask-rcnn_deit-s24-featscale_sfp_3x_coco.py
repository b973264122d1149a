"""Mask R-CNN with DeiT-S24 + FeatScale on COCO, 3x (36 epochs, multi-scale).
    python tools/train.py configs/antioversmoothing/mask-rcnn_deit-s24-featscale_sfp_3x_coco.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_deit-s24.py', '../_base_/settings/coco-instance_swin-3x.py']
model = dict(backbone=dict(feat_scale=True))
