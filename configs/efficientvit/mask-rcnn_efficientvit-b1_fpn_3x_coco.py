"""Mask R-CNN with EfficientViT-B1 on COCO, 3x (36 epochs).
python tools/train.py configs/efficientvit/mask-rcnn_efficientvit-b1_fpn_3x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_efficientvit-b1.py', '../_base_/settings/coco-instance_swin-3x.py']
