"""Mask R-CNN with SOFT++-Large on COCO, 1x (12 epochs).

Paper: box AP 47.0, mask AP 42.2, 106M parameters.

    python tools/train.py configs/soft/mask-rcnn_softpp-l_fpn_1x_coco.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './mask-rcnn_softpp-t_fpn_1x_coco.py'

model = dict(backbone=dict(arch='large'), neck=dict(in_channels=[128, 256, 512, 1024]))
