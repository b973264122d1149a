"""Mask R-CNN with EfficientViT-L1 on Cityscapes, 1x (8 epochs of 8 repetitions).
python tools/train.py configs/efficientvit/mask-rcnn_efficientvit-l1_fpn_1x_cityscapes.py
"""

_base_ = ['../_base_/models/mask-rcnn_efficientvit-b1.py', '../_base_/settings/cityscapes-instance_swin-1x.py']
pretrained = (
    'https://huggingface.co/han-cai/efficientvit-cls/resolve/main/efficientvit_l1_r224.pt#/efficientvit_l1_r224.pth'
)
model = dict(
    backbone=dict(arch='l1', drop_path_rate=0.1), neck=dict(in_channels=[64, 128, 256, 512]), **_base_.cityscapes_model
)
