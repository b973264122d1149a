"""UperNet with SOFT++-Small on Cityscapes, 3x (120k iterations).

No result of a paper is quoted for it.

    python tools/train.py configs/soft/upernet_softpp-s_3x_cityscapes-768x768.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './upernet_softpp-t_3x_cityscapes-768x768.py'

model = dict(
    backbone=dict(arch='small'),
    decode_head=dict(in_channels=[96, 192, 384, 768]),
    auxiliary_head=dict(in_channels=384),
)
