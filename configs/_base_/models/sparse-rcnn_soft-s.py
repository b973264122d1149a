"""Sparse R-CNN with 300 proposals, with MMDetection's settings."""

_base_ = './mask-rcnn_soft-s.py'
model = dict(
    type='SparseRCNN',
    data_preprocessor=dict(pad_mask=False),
    neck=dict(num_outs=4),
    rpn_head=dict(_delete_=True, type='EmbeddingRPNHead', num_proposals=300, proposal_feature_channel=256),
    roi_head=dict(
        _delete_=True,
        type='SparseRoIHead',
        num_stages=6,
        stage_loss_weights=[1] * 6,
        proposal_feature_channel=256,
        bbox_roi_extractor=dict(
            type='SingleRoIExtractor',
            roi_layer=dict(type='RoIAlign', output_size=7, sampling_ratio=2),
            out_channels=256,
            featmap_strides=[4, 8, 16, 32],
        ),
        bbox_head=[
            dict(
                type='DIIHead',
                num_classes=80,
                num_ffn_fcs=2,
                num_heads=8,
                num_cls_fcs=1,
                num_reg_fcs=3,
                feedforward_channels=2048,
                in_channels=256,
                dropout=0.0,
                ffn_act_cfg=dict(type='ReLU', inplace=True),
                dynamic_conv_cfg=dict(
                    type='DynamicConv',
                    in_channels=256,
                    feat_channels=64,
                    out_channels=256,
                    input_feat_shape=7,
                    act_cfg=dict(type='ReLU', inplace=True),
                    norm_cfg=dict(type='LN'),
                ),
                loss_bbox=dict(type='L1Loss', loss_weight=5.0),
                loss_iou=dict(type='GIoULoss', loss_weight=2.0),
                loss_cls=dict(type='FocalLoss', use_sigmoid=True, gamma=2.0, alpha=0.25, loss_weight=2.0),
                bbox_coder=dict(type='DeltaXYWHBBoxCoder', clip_border=False, target_stds=[0.5, 0.5, 1.0, 1.0]),
            )
        ]
        * 6,
    ),
    train_cfg=dict(
        _delete_=True,
        rpn=None,
        rcnn=[
            dict(
                assigner=dict(
                    type='HungarianAssigner',
                    match_costs=[
                        dict(type='FocalLossCost', weight=2.0),
                        dict(type='BBoxL1Cost', weight=5.0, box_format='xyxy'),
                        dict(type='IoUCost', iou_mode='giou', weight=2.0),
                    ],
                ),
                sampler=dict(type='PseudoSampler'),
                pos_weight=1,
            )
        ]
        * 6,
    ),
    test_cfg=dict(_delete_=True, rpn=None, rcnn=dict(max_per_img=300)),
)
