"""RetinaNet with SOFT++-Small on Cityscapes, 1x (8 epochs of 8 repetitions).

No result of a paper is quoted for it.

    python tools/train.py configs/soft/retinanet_softpp-s_fpn_1x_cityscapes.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './retinanet_softpp-t_fpn_1x_cityscapes.py'

model = dict(backbone=dict(arch='small'), neck=dict(in_channels=[96, 192, 384, 768]))
