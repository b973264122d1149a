"""Mask R-CNN with EfficientViT-B2 on COCO, 1x (12 epochs).
python tools/train.py configs/efficientvit/mask-rcnn_efficientvit-b2_fpn_1x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_efficientvit-b1.py', '../_base_/settings/coco-instance_swin-1x.py']
pretrained = (
    'https://huggingface.co/han-cai/efficientvit-cls/resolve/main/efficientvit_b2_r224.pt#/efficientvit_b2_r224.pth'
)
model = dict(backbone=dict(arch='b2'), neck=dict(in_channels=[48, 96, 192, 384]))
