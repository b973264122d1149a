_base_ = './classifier_efficientvit-b1.py'
model = dict(
    backbone=dict(arch='l1', drop_path_rate=0.1),
    neck=dict(
        in_channels=512,
        out_channels=3072,
        hidden_channels=3200,
        norm_cfg=dict(eps=1e-7),
        act_cfg=dict(type='GELU', approximate='tanh'),
    ),
    head=dict(in_channels=3200),
    train_cfg=dict(augments=[dict(type='Mixup', alpha=0.2), dict(type='CutMix', alpha=0.2)]),
)
