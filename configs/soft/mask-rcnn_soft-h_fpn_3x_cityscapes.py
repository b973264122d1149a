"""Mask R-CNN with SOFT-Huge (normalized) on Cityscapes, 3x (24 epochs of 8 repetitions).
python tools/train.py configs/soft/mask-rcnn_soft-h_fpn_3x_cityscapes.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_soft-t.py', '../_base_/settings/cityscapes-instance_3x.py']
model = dict(backbone=dict(arch='huge'), neck=dict(in_channels=[64, 128, 352, 512]), **_base_.cityscapes_model)
