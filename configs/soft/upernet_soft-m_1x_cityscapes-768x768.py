"""UperNet with SOFT-Medium (normalized) on Cityscapes, 1x (40k iterations).
python tools/train.py configs/soft/upernet_soft-m_1x_cityscapes-768x768.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_soft-s_cityscapes.py', '../_base_/settings/cityscapes-768x768_soft-1x.py']
model = dict(
    backbone=dict(arch='medium', drop_path_rate=0.3),
    decode_head=dict(in_channels=[64, 128, 288, 512]),
    auxiliary_head=dict(in_channels=288),
)
