"""DINO on four scales with SOFT++-Small on COCO, 1x (12 epochs).
python tools/train.py configs/soft/dino-4scale_softpp-s_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/dino-4scale.py', '../_base_/settings/coco-detection_dino-1x.py']
model = dict(
    backbone=dict(
        type='mmlinattn.SOFTPlusPlus',
        arch='small',
        drop_path_rate=0.1,
        norm_cfg=dict(type='SyncBN', requires_grad=True),
    ),
    neck=dict(in_channels=[192, 384, 768]),
)
