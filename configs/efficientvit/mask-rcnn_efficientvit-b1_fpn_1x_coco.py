"""Mask R-CNN with EfficientViT-B1 on COCO, 1x (12 epochs).
python tools/train.py configs/efficientvit/mask-rcnn_efficientvit-b1_fpn_1x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_efficientvit-b1.py', '../_base_/settings/coco-instance_swin-1x.py']
