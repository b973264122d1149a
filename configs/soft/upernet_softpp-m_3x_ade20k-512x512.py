"""UperNet with SOFT++-Medium on ADE20K, 3x (480k iterations).

Paper: 81M parameters.

    python tools/train.py configs/soft/upernet_softpp-m_3x_ade20k-512x512.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './upernet_softpp-t_3x_ade20k-512x512.py'

model = dict(
    backbone=dict(arch='medium'),
    decode_head=dict(in_channels=[96, 192, 384, 768]),
    auxiliary_head=dict(in_channels=384),
)
