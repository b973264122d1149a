"""Mask R-CNN with SOFT++-Medium on COCO, 1x (12 epochs).

Paper: box AP 46.6, mask AP 42.0, 69M parameters.

    python tools/train.py configs/soft/mask-rcnn_softpp-m_fpn_1x_coco.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './mask-rcnn_softpp-t_fpn_1x_coco.py'

model = dict(backbone=dict(arch='medium'), neck=dict(in_channels=[96, 192, 384, 768]))
