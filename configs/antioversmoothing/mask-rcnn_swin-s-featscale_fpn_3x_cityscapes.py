"""Mask R-CNN with Swin-S + FeatScale on Cityscapes, 3x (24 epochs of 8 repetitions).
python tools/train.py configs/antioversmoothing/mask-rcnn_swin-s-featscale_fpn_3x_cityscapes.py
"""

_base_ = ['../_base_/models/mask-rcnn_swin-s.py', '../_base_/settings/cityscapes-instance_swin-3x.py']
model = dict(backbone=dict(feat_scale=True), **_base_.cityscapes_model)
