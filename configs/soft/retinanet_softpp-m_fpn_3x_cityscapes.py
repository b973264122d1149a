"""RetinaNet with SOFT++-Medium on Cityscapes, 3x (24 epochs of 8 repetitions).

No result of a paper is quoted for it.

    python tools/train.py configs/soft/retinanet_softpp-m_fpn_3x_cityscapes.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './retinanet_softpp-t_fpn_3x_cityscapes.py'

model = dict(backbone=dict(arch='medium'), neck=dict(in_channels=[96, 192, 384, 768]))
