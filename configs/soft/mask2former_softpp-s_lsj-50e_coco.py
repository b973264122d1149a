"""Mask2Former with SOFT++-Small for instances on COCO, 50 epochs of large-scale jittering.
python tools/train.py configs/soft/mask2former_softpp-s_lsj-50e_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask2former.py', '../_base_/settings/coco-instance_mask2former-50e.py']
model = dict(
    backbone=dict(
        type='mmlinattn.SOFTPlusPlus',
        arch='small',
        drop_path_rate=0.1,
        norm_cfg=dict(type='SyncBN', requires_grad=True),
    ),
    panoptic_head=dict(in_channels=[96, 192, 384, 768]),
)
