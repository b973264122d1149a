"""Mask R-CNN with Swin-S + AttnScale on COCO, 1x (12 epochs).

No figure in the paper: it trains on ImageNet only.

    python tools/train.py \
        configs/antioversmoothing/mask-rcnn_swin-s-attnscale_fpn_1x_coco.py \
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
        type='mmlinattn.SwinTransformer',
        arch='small',
        drop_path_rate=0.2,
        attn_scale=True,
    ),
    neck=dict(in_channels=[96, 192, 384, 768]),
)

optim_wrapper = dict(optimizer=dict(weight_decay=0.05))
