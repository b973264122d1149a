"""Mask R-CNN with DeiT-S24 + AttnScale on Cityscapes, 3x (24 epochs of 8 repetitions).
    python tools/train.py configs/antioversmoothing/mask-rcnn_deit-s24-attnscale_sfp_3x_cityscapes.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_deit-s24.py', '../_base_/settings/cityscapes-instance_swin-3x.py']
model = dict(backbone=dict(attn_scale=True), **_base_.cityscapes_model)
