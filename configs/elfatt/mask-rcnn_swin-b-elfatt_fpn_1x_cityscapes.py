"""Mask R-CNN with Swin-B-ELFATT on Cityscapes, 1x (8 epochs of 8 repetitions).
python tools/train.py configs/elfatt/mask-rcnn_swin-b-elfatt_fpn_1x_cityscapes.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_swin-b-elfatt.py', '../_base_/settings/cityscapes-instance_swin-1x.py']
model = _base_.cityscapes_model
