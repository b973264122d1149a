"""UperNet with SOFT-Medium (normalized) on ADE20K, 3x (480k iterations).

Paper: 76M parameters.

    python tools/train.py configs/soft/upernet_soft-m_3x_ade20k-512x512.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './upernet_soft-s_3x_ade20k-512x512.py'

model = dict(
    backbone=dict(arch='medium'),
    decode_head=dict(in_channels=[64, 128, 288, 512]),
    auxiliary_head=dict(in_channels=288),
)
