"""UperNet with SOFT++-Medium on Cityscapes, 1x (40k iterations).

Paper: mIoU 82.0.

    python tools/train.py configs/soft/upernet_softpp-m_1x_cityscapes-768x768.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './upernet_softpp-t_1x_cityscapes-768x768.py'

model = dict(
    backbone=dict(arch='medium'),
    decode_head=dict(in_channels=[96, 192, 384, 768]),
    auxiliary_head=dict(in_channels=384),
)
