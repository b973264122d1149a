"""RetinaNet with CSWin-T-ELFATT on Cityscapes, 1x (8 epochs of 8 repetitions).

No figure in the paper.

Blocks of 196 tokens in every level, as in all of the paper's tables but the
first; weights of the ImageNet recipe, with 49, 49 and 196, fit.

    python tools/train.py configs/elfatt/retinanet_cswin-t-elfatt_fpn_1x_cityscapes.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = [
    '../_base_/models/retinanet_fpn.py',
    'mmdet::_base_/datasets/cityscapes_detection.py',
    '../_base_/schedules/cityscapes-det_1x.py',
    '../_base_/det_runtime.py',
]

model = dict(
    backbone=dict(
        type='mmlinattn.CSWinTransformer',
        arch='t24181',
        attention='elfatt',
        out_indices=(1, 2, 3),
        drop_path_rate=0.2,
    ),
    neck=dict(in_channels=[128, 256, 512], start_level=0),
    bbox_head=dict(num_classes=8),
)

optim_wrapper = dict(optimizer=dict(weight_decay=0.05))
