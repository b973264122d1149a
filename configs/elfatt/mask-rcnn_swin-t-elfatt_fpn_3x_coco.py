"""Mask R-CNN with Swin-T-ELFATT on COCO, 3x (36 epochs, multi-scale).

Paper: box AP 48.5, mask AP 43.6, 50M parameters.

    python tools/train.py configs/elfatt/mask-rcnn_swin-t-elfatt_fpn_3x_coco.py \
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
        arch='tiny',
        attention='elfatt',
        drop_path_rate=0.2,
    ),
    neck=dict(in_channels=[96, 192, 384, 768]),
)

optim_wrapper = dict(optimizer=dict(weight_decay=0.05))
