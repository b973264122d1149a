"""RetinaNet with Swin-B-ELFATT on COCO, 3x (36 epochs, multi-scale).

No figure in the paper.

    python tools/train.py configs/elfatt/retinanet_swin-b-elfatt_fpn_3x_coco.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = [
    '../_base_/models/retinanet_fpn.py',
    '../_base_/datasets/coco_detection_480-800.py',
    '../_base_/schedules/coco_3x.py',
    '../_base_/det_runtime.py',
]

model = dict(
    backbone=dict(
        type='mmlinattn.SwinTransformer',
        arch='base',
        attention='elfatt',
        out_indices=(1, 2, 3),
        drop_path_rate=0.6,
    ),
    neck=dict(in_channels=[256, 512, 1024], start_level=0),
)

optim_wrapper = dict(optimizer=dict(weight_decay=0.05))
