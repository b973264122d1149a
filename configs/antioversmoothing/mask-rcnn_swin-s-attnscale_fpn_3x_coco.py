"""Mask R-CNN with Swin-S + AttnScale on COCO, 3x (36 epochs, multi-scale).

No figure in the paper: it trains on ImageNet only.

    python tools/train.py \
        configs/antioversmoothing/mask-rcnn_swin-s-attnscale_fpn_3x_coco.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = [
    '../_base_/models/mask-rcnn_fpn.py',
    '../_base_/datasets/coco_instance_480-800.py',
    '../_base_/schedules/coco_3x.py',
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
