"""UperNet with SOFT++-Small on Cityscapes, 1x (40k iterations).

Paper: mIoU 81.2.

    python tools/train.py configs/soft/upernet_softpp-s_1x_cityscapes-768x768.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './upernet_softpp-t_1x_cityscapes-768x768.py'

model = dict(
    backbone=dict(arch='small'),
    decode_head=dict(in_channels=[96, 192, 384, 768]),
    auxiliary_head=dict(in_channels=384),
)
