"""RetinaNet with SOFT++-Tiny on COCO, 3x (36 epochs, multi-scale).

Paper: 23M parameters.

    python tools/train.py configs/soft/retinanet_softpp-t_fpn_3x_coco.py \
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
        type='mmlinattn.SOFTPlusPlus',
        arch='tiny',
        drop_path_rate=0.1,
        norm_cfg=dict(type='SyncBN', requires_grad=True),
    ),
    neck=dict(in_channels=[64, 128, 256, 512]),
)
