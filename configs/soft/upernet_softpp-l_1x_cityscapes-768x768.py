"""UperNet with SOFT++-Large on Cityscapes, 1x (40k iterations).

Paper: mIoU 82.6.

    python tools/train.py configs/soft/upernet_softpp-l_1x_cityscapes-768x768.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './upernet_softpp-t_1x_cityscapes-768x768.py'

model = dict(
    backbone=dict(arch='large'),
    decode_head=dict(in_channels=[128, 256, 512, 1024]),
    auxiliary_head=dict(in_channels=512),
)
