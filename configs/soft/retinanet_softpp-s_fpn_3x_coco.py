"""RetinaNet with SOFT++-Small on COCO, 3x (36 epochs, multi-scale).

Paper: 38M parameters.

    python tools/train.py configs/soft/retinanet_softpp-s_fpn_3x_coco.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './retinanet_softpp-t_fpn_3x_coco.py'

model = dict(backbone=dict(arch='small'), neck=dict(in_channels=[96, 192, 384, 768]))
