"""Mask R-CNN with EfficientViT-L1 on COCO, 1x (12 epochs).
python tools/train.py configs/efficientvit/mask-rcnn_efficientvit-l1_fpn_1x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_efficientvit-b1.py', '../_base_/settings/coco-instance_swin-1x.py']
pretrained = (
    'https://huggingface.co/han-cai/efficientvit-cls/resolve/main/efficientvit_l1_r224.pt#/efficientvit_l1_r224.pth'
)
model = dict(backbone=dict(arch='l1', drop_path_rate=0.1), neck=dict(in_channels=[64, 128, 256, 512]))
