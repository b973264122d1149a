"""Mask R-CNN with SOFT-Medium (normalized) on COCO, 3x (36 epochs, multi-scale).

Paper: 65M parameters.

    python tools/train.py configs/soft/mask-rcnn_soft-m_fpn_3x_coco.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './mask-rcnn_soft-t_fpn_3x_coco.py'

model = dict(backbone=dict(arch='medium'), neck=dict(in_channels=[64, 128, 288, 512]))
