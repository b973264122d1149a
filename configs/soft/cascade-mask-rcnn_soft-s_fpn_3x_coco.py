"""Cascade Mask R-CNN with SOFT-Small (normalized) on COCO, 3x (36 epochs, multi-scale).
arXiv preprint of SOFT++: box AP 48.3, 77M parameters.
The paper does not print the schedule of these rows. Those of ResNet-50 beside them are known from 3x.
    python tools/train.py configs/soft/cascade-mask-rcnn_soft-s_fpn_3x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/cascade-mask-rcnn_softpp-s.py', '../_base_/settings/coco-instance_3x.py']
model = dict(backbone=dict(type='mmlinattn.SOFT', attn_norm=True), neck=dict(in_channels=[64, 128, 320, 512]))
