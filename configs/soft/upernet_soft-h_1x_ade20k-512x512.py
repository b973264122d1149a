"""UperNet with SOFT-Huge (normalized) on ADE20K, 1x (160k iterations).
python tools/train.py configs/soft/upernet_soft-h_1x_ade20k-512x512.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_soft-s.py', '../_base_/settings/ade20k-512x512_soft-1x.py']
model = dict(
    backbone=dict(arch='huge'), decode_head=dict(in_channels=[64, 128, 352, 512]), auxiliary_head=dict(in_channels=352)
)
