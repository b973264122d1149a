"""Mask R-CNN with Swin-B-ELFATT on COCO, 3x (36 epochs, multi-scale).
python tools/train.py configs/elfatt/mask-rcnn_swin-b-elfatt_fpn_3x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_swin-b-elfatt.py', '../_base_/settings/coco-instance_swin-3x.py']
