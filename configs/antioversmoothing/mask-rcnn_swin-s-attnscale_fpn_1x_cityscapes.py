"""Mask R-CNN with Swin-S + AttnScale on Cityscapes, 1x (8 epochs of 8 repetitions).
python tools/train.py configs/antioversmoothing/mask-rcnn_swin-s-attnscale_fpn_1x_cityscapes.py
"""

_base_ = ['../_base_/models/mask-rcnn_swin-s.py', '../_base_/settings/cityscapes-instance_swin-1x.py']
model = dict(backbone=dict(attn_scale=True), **_base_.cityscapes_model)
