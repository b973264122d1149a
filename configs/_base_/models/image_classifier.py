"""ImageNet classifier. Still to be given: backbone and head.in_channels.

Source: the papers name mixup, cutmix and label smoothing; their strengths are DeiT's.
"""

pretrained = None
model = dict(
    type='ImageClassifier',
    head=dict(
        type='LinearClsHead',
        num_classes=1000,
        init_cfg=dict(type='TruncNormal', layer='Linear', std=0.02),
        loss=dict(type='LabelSmoothLoss', label_smooth_val=0.1, mode='original'),
        cal_acc=False,
    ),
    train_cfg=dict(augments=[dict(type='Mixup', alpha=0.8), dict(type='CutMix', alpha=1.0)]),
)
