"""Mask R-CNN with CSWin-T-ELFATT on Cityscapes, 1x (8 epochs of 8 repetitions).

No figure in the paper.

Blocks of 196 tokens in every level, as in all of the paper's tables but the
first; weights of the ImageNet recipe, with 49, 49 and 196, fit.

    python tools/train.py configs/elfatt/mask-rcnn_cswin-t-elfatt_fpn_1x_cityscapes.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = [
    '../_base_/models/mask-rcnn_fpn.py',
    'mmdet::_base_/datasets/cityscapes_instance.py',
    '../_base_/schedules/cityscapes-det_1x.py',
    '../_base_/det_runtime.py',
]

model = dict(
    backbone=dict(
        type='mmlinattn.CSWinTransformer',
        arch='t24181',
        attention='elfatt',
        drop_path_rate=0.2,
    ),
    neck=dict(in_channels=[64, 128, 256, 512]),
    roi_head=dict(bbox_head=dict(num_classes=8), mask_head=dict(num_classes=8)),
)

optim_wrapper = dict(optimizer=dict(weight_decay=0.05))
