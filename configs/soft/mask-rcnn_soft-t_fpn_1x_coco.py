"""Mask R-CNN with SOFT-Tiny (normalized) on COCO, 1x (12 epochs).

Paper: 33M parameters.

    python tools/train.py configs/soft/mask-rcnn_soft-t_fpn_1x_coco.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = [
    '../_base_/models/mask-rcnn_fpn.py',
    'mmdet::_base_/datasets/coco_instance.py',
    '../_base_/schedules/coco_1x.py',
    '../_base_/det_runtime.py',
]

model = dict(
    backbone=dict(
        type='mmlinattn.SOFT',
        arch='tiny',
        attn_norm=True,
        drop_path_rate=0.1,
        norm_cfg=dict(type='SyncBN', requires_grad=True),
    ),
    neck=dict(in_channels=[64, 128, 320, 512]),
)
