"""RetinaNet with SOFT++-Small on COCO, 1x (12 epochs).

Paper: AP 43.7, 38M parameters.

    python tools/train.py configs/soft/retinanet_softpp-s_fpn_1x_coco.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './retinanet_softpp-t_fpn_1x_coco.py'

model = dict(backbone=dict(arch='small'), neck=dict(in_channels=[96, 192, 384, 768]))
