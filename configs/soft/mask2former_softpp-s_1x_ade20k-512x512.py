"""Mask2Former with SOFT++-Small on ADE20K, 1x (160k iterations).
python tools/train.py configs/soft/mask2former_softpp-s_1x_ade20k-512x512.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask2former_ade20k.py', '../_base_/settings/ade20k-512x512_mask2former-1x.py']
model = dict(
    backbone=dict(
        type='mmlinattn.SOFTPlusPlus',
        arch='small',
        drop_path_rate=0.1,
        norm_cfg=dict(type='SyncBN', requires_grad=True),
    ),
    decode_head=dict(in_channels=[96, 192, 384, 768]),
)
