"""Mask R-CNN with Swin-T-ELFATT on COCO, 1x (12 epochs). Paper: box AP 46.1, mask AP 42.1, 50M parameters.
python tools/train.py configs/elfatt/mask-rcnn_swin-t-elfatt_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_swin-t.py', '../_base_/settings/coco-instance_swin-1x.py']
model = dict(backbone=dict(attention='elfatt'))
