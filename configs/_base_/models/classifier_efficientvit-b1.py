_base_ = './image_classifier.py'
model = dict(
    backbone=dict(type='mmlinattn.EfficientViT', arch='b1', drop_path_rate=0.05),
    neck=dict(
        type='mmlinattn.ConvPoolingNeck',
        in_channels=256,
        out_channels=1536,
        hidden_channels=1600,
        bias=False,
        norm_cfg=dict(type='BN'),
        act_cfg=dict(type='HSwish'),
    ),
    head=dict(in_channels=1600, loss=dict(use_sigmoid=True)),
    train_cfg=dict(augments=[dict(type='Mixup', alpha=0.1), dict(type='CutMix', alpha=0.1)]),
)
