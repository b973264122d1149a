"""Mask R-CNN with SOFT++-Small on Cityscapes, 3x (24 epochs of 8 repetitions).

No result of a paper is quoted for it.

    python tools/train.py configs/soft/mask-rcnn_softpp-s_fpn_3x_cityscapes.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './mask-rcnn_softpp-t_fpn_3x_cityscapes.py'

model = dict(backbone=dict(arch='small'), neck=dict(in_channels=[96, 192, 384, 768]))
