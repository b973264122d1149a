"""Mask R-CNN with linear SOFT++-Large on Cityscapes, 1x (8 epochs of 8 repetitions).
python tools/train.py configs/soft/mask-rcnn_softpp-l-linear_fpn_1x_cityscapes.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_softpp-l-linear.py', '../_base_/settings/cityscapes-instance_1x.py']
model = _base_.cityscapes_model
