"""Mask R-CNN with CSWin-T-ELFATT on COCO, 1x (12 epochs).

Paper: box AP 47.0, mask AP 42.6, 40M parameters.

Blocks of 196 tokens in every level, as in all of the paper's tables but the
first; weights of the ImageNet recipe, with 49, 49 and 196, fit.

    python tools/train.py configs/elfatt/mask-rcnn_cswin-t-elfatt_fpn_1x_coco.py \
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
        arch='t24181',
        attention='elfatt',
        drop_path_rate=0.2,
    ),
    neck=dict(in_channels=[64, 128, 256, 512]),
)

optim_wrapper = dict(optimizer=dict(weight_decay=0.05))
