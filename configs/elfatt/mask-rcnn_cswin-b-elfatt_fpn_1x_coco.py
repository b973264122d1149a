"""Mask R-CNN with CSWin-B-ELFATT on COCO, 1x (12 epochs).

No figure in the paper.

    python tools/train.py configs/elfatt/mask-rcnn_cswin-b-elfatt_fpn_1x_coco.py \
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
        type='mmlinattn.CSWinTransformer',
        arch='b36292',
        attention='elfatt',
        drop_path_rate=0.6,
    ),
    neck=dict(in_channels=[96, 192, 384, 768]),
)

optim_wrapper = dict(optimizer=dict(weight_decay=0.05))
