"""RetinaNet with SOFT++-Tiny on Cityscapes, 1x (8 epochs of 8 repetitions).

No result of a paper is quoted for it.

    python tools/train.py configs/soft/retinanet_softpp-t_fpn_1x_cityscapes.py \
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
        type='mmlinattn.SOFTPlusPlus',
        arch='tiny',
        drop_path_rate=0.1,
        norm_cfg=dict(type='SyncBN', requires_grad=True),
    ),
    neck=dict(in_channels=[64, 128, 256, 512]),
    bbox_head=dict(num_classes=8),
)
