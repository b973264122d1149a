"""Mask R-CNN with SOFT-Small (normalized) on COCO, 3x (36 epochs, multi-scale). Paper: 44M parameters.
python tools/train.py configs/soft/mask-rcnn_soft-s_fpn_3x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_soft-t.py', '../_base_/settings/coco-instance_3x.py']
model = dict(backbone=dict(arch='small'))
