"""UperNet with SOFT++-Large on ADE20K, 3x (480k iterations).

Paper: 121M parameters.

    python tools/train.py configs/soft/upernet_softpp-l_3x_ade20k-512x512.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './upernet_softpp-t_3x_ade20k-512x512.py'

model = dict(
    backbone=dict(arch='large'),
    decode_head=dict(in_channels=[128, 256, 512, 1024]),
    auxiliary_head=dict(in_channels=512),
)
