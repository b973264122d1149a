"""Mask R-CNN with EfficientViT-B1 on Cityscapes, 1x (8 epochs of 8 repetitions).
python tools/train.py configs/efficientvit/mask-rcnn_efficientvit-b1_fpn_1x_cityscapes.py
"""

_base_ = ['../_base_/models/mask-rcnn_efficientvit-b1.py', '../_base_/settings/cityscapes-instance_swin-1x.py']
model = _base_.cityscapes_model
