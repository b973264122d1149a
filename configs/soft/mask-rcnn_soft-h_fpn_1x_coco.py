"""Mask R-CNN with SOFT-Huge (normalized) on COCO, 1x (12 epochs).
python tools/train.py configs/soft/mask-rcnn_soft-h_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_soft-t.py', '../_base_/settings/coco-instance_1x.py']
model = dict(backbone=dict(arch='huge'), neck=dict(in_channels=[64, 128, 352, 512]))
