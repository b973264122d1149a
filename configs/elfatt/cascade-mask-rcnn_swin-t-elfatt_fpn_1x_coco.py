"""Cascade Mask R-CNN with Swin-T-ELFATT on COCO, 1x (12 epochs).
python tools/train.py configs/elfatt/cascade-mask-rcnn_swin-t-elfatt_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/cascade-mask-rcnn_swin-t-elfatt.py', '../_base_/settings/coco-instance_swin-1x.py']
