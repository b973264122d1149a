"""Mask R-CNN with DeiT-S24 + AttnScale on COCO, 1x (12 epochs).
    python tools/train.py configs/antioversmoothing/mask-rcnn_deit-s24-attnscale_sfp_1x_coco.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_deit-s24.py', '../_base_/settings/coco-instance_swin-1x.py']
model = dict(backbone=dict(attn_scale=True))
