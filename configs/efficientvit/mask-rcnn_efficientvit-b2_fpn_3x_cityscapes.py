"""Mask R-CNN with EfficientViT-B2 on Cityscapes, 3x (24 epochs of 8 repetitions).
python tools/train.py configs/efficientvit/mask-rcnn_efficientvit-b2_fpn_3x_cityscapes.py
"""

_base_ = ['../_base_/models/mask-rcnn_efficientvit-b1.py', '../_base_/settings/cityscapes-instance_swin-3x.py']
pretrained = (
    'https://huggingface.co/han-cai/efficientvit-cls/resolve/main/efficientvit_b2_r224.pt#/efficientvit_b2_r224.pth'
)
model = dict(backbone=dict(arch='b2'), neck=dict(in_channels=[48, 96, 192, 384]), **_base_.cityscapes_model)
