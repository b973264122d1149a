"""Rotated FCOS with RAVLT-S on DOTA 1.0, 1x (12 epochs, tiles of 1024 x 1024).
python tools/train.py configs/rotated/rotated-fcos_ravlt-s_fpn_1x_dota.py
"""

_base_ = '../_base_/models/rotated-fcos_fpn.py'
pretrained = 'https://huggingface.co/aldjalkdf/RAVLT/resolve/main/RAVLT_S.pth#/RAVLT_S.pth'
model = dict(
    backbone=dict(
        type='mmlinattn.RAVLT', arch='small', drop_path_rate=0.15, norm_cfg=dict(type='SyncBN', requires_grad=True)
    ),
    neck=dict(in_channels=[128, 320, 512]),
)
