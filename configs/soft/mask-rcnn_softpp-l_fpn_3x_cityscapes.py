"""Mask R-CNN with SOFT++-Large on Cityscapes, 3x (24 epochs of 8 repetitions).

No result of a paper is quoted for it.

    python tools/train.py configs/soft/mask-rcnn_softpp-l_fpn_3x_cityscapes.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './mask-rcnn_softpp-t_fpn_3x_cityscapes.py'

model = dict(backbone=dict(arch='large'), neck=dict(in_channels=[128, 256, 512, 1024]))
