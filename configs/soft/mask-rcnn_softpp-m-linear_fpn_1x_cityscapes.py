"""Mask R-CNN with linear SOFT++-Medium on Cityscapes, 1x (8 epochs of 8 repetitions).
python tools/train.py configs/soft/mask-rcnn_softpp-m-linear_fpn_1x_cityscapes.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_softpp-s-linear.py', '../_base_/settings/cityscapes-instance_1x.py']
model = dict(backbone=dict(arch='medium'), **_base_.cityscapes_model)
