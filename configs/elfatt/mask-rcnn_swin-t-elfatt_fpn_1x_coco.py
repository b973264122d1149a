"""Mask R-CNN with Swin-T-ELFATT on COCO, 1x (12 epochs).

Paper: box AP 46.1, mask AP 42.1, 50M parameters.

    python tools/train.py configs/elfatt/mask-rcnn_swin-t-elfatt_fpn_1x_coco.py \
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
        arch='tiny',
        attention='elfatt',
        drop_path_rate=0.2,
    ),
    neck=dict(in_channels=[96, 192, 384, 768]),
)

optim_wrapper = dict(optimizer=dict(weight_decay=0.05))
