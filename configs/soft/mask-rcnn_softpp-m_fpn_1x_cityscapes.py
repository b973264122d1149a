"""Mask R-CNN with SOFT++-Medium on Cityscapes, 1x (8 epochs of 8 repetitions).

No result of a paper is quoted for it.

    python tools/train.py configs/soft/mask-rcnn_softpp-m_fpn_1x_cityscapes.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './mask-rcnn_softpp-t_fpn_1x_cityscapes.py'

model = dict(backbone=dict(arch='medium'), neck=dict(in_channels=[96, 192, 384, 768]))
