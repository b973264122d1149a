"""Oriented R-CNN with linear SOFT++-Tiny on DOTA 1.0, 1x (12 epochs, tiles of 1024 x 1024).
python tools/train.py configs/rotated/oriented-rcnn_softpp-t-linear_fpn_1x_dota.py --cfg-options pretrained=WEIGHTS
"""

_base_ = '../_base_/models/oriented-rcnn_fpn.py'
model = dict(
    backbone=dict(
        type='mmlinattn.LinearSOFTPlusPlus',
        arch='tiny',
        drop_path_rate=0.1,
        norm_cfg=dict(type='SyncBN', requires_grad=True),
    ),
    neck=dict(in_channels=[64, 128, 256, 512]),
)
