"""UperNet with SOFT++-Small on ADE20K, 1x (160k iterations).

Paper: mIoU 46.5, 60M parameters.

    python tools/train.py configs/soft/upernet_softpp-s_1x_ade20k-512x512.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './upernet_softpp-t_1x_ade20k-512x512.py'

model = dict(
    backbone=dict(arch='small'),
    decode_head=dict(in_channels=[96, 192, 384, 768]),
    auxiliary_head=dict(in_channels=384),
)
