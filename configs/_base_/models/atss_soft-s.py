"""ATSS, with MMDetection's settings."""

_base_ = './retinanet_soft-s.py'
model = dict(
    type='ATSS',
    neck=dict(add_extra_convs='on_output'),
    bbox_head=dict(
        _delete_=True,
        type='ATSSHead',
        num_classes=80,
        in_channels=256,
        stacked_convs=4,
        feat_channels=256,
        anchor_generator=dict(
            type='AnchorGenerator', ratios=[1.0], octave_base_scale=8, scales_per_octave=1, strides=[8, 16, 32, 64, 128]
        ),
        bbox_coder=dict(type='DeltaXYWHBBoxCoder', target_stds=[0.1, 0.1, 0.2, 0.2]),
        loss_cls=dict(type='FocalLoss', use_sigmoid=True, gamma=2.0, alpha=0.25),
        loss_bbox=dict(type='GIoULoss', loss_weight=2.0),
        loss_centerness=dict(type='CrossEntropyLoss', use_sigmoid=True),
    ),
    train_cfg=dict(_delete_=True, assigner=dict(type='ATSSAssigner', topk=9), allowed_border=-1, pos_weight=-1),
    test_cfg=dict(nms=dict(iou_threshold=0.6)),
)
