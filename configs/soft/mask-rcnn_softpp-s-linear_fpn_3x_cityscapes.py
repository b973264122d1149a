"""Mask R-CNN with linear SOFT++-Small on Cityscapes, 3x (24 epochs of 8 repetitions).
python tools/train.py configs/soft/mask-rcnn_softpp-s-linear_fpn_3x_cityscapes.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_softpp-s-linear.py', '../_base_/settings/cityscapes-instance_3x.py']
model = _base_.cityscapes_model
