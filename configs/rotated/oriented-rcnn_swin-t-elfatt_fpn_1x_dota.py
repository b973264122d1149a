"""Oriented R-CNN with Swin-T-ELFATT on DOTA 1.0, 1x (12 epochs, tiles of 1024 x 1024).
python tools/train.py configs/rotated/oriented-rcnn_swin-t-elfatt_fpn_1x_dota.py --cfg-options pretrained=WEIGHTS
"""

_base_ = '../_base_/models/oriented-rcnn_fpn.py'
model = dict(
    backbone=dict(
        type='mmlinattn.SwinTransformer', arch='tiny', attention='elfatt', drop_path_rate=0.2, pad_small_map=True
    ),
    neck=dict(in_channels=[96, 192, 384, 768]),
)
