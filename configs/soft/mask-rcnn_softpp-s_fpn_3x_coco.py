"""Mask R-CNN with SOFT++-Small on COCO, 3x (36 epochs, multi-scale).

Paper: 48M parameters.

    python tools/train.py configs/soft/mask-rcnn_softpp-s_fpn_3x_coco.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './mask-rcnn_softpp-t_fpn_3x_coco.py'

model = dict(backbone=dict(arch='small'), neck=dict(in_channels=[96, 192, 384, 768]))
