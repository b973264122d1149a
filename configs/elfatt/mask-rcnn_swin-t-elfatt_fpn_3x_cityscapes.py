"""Mask R-CNN with Swin-T-ELFATT on Cityscapes, 3x (24 epochs of 8 repetitions).

No figure in the paper.

    python tools/train.py configs/elfatt/mask-rcnn_swin-t-elfatt_fpn_3x_cityscapes.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = [
    '../_base_/models/mask-rcnn_fpn.py',
    'mmdet::_base_/datasets/cityscapes_instance.py',
    '../_base_/schedules/cityscapes-det_3x.py',
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
    roi_head=dict(bbox_head=dict(num_classes=8), mask_head=dict(num_classes=8)),
)

optim_wrapper = dict(optimizer=dict(weight_decay=0.05))
