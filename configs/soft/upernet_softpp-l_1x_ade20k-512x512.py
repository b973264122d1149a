"""UperNet with SOFT++-Large on ADE20K, 1x (160k iterations).

Paper: mIoU 49.2, 121M parameters.

    python tools/train.py configs/soft/upernet_softpp-l_1x_ade20k-512x512.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './upernet_softpp-t_1x_ade20k-512x512.py'

model = dict(
    backbone=dict(arch='large'),
    decode_head=dict(in_channels=[128, 256, 512, 1024]),
    auxiliary_head=dict(in_channels=512),
)
