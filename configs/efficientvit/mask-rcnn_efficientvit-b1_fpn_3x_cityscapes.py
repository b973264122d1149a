"""Mask R-CNN with EfficientViT-B1 on Cityscapes, 3x (24 epochs of 8 repetitions).
python tools/train.py configs/efficientvit/mask-rcnn_efficientvit-b1_fpn_3x_cityscapes.py
"""

_base_ = ['../_base_/models/mask-rcnn_efficientvit-b1.py', '../_base_/settings/cityscapes-instance_swin-3x.py']
model = _base_.cityscapes_model
