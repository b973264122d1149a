_base_ = './upernet.py'
pretrained = 'https://dl.fbaipublicfiles.com/deit/deit_small_patch16_224-cd65a155.pth'
model = dict(
    backbone=dict(
        type='mmlinattn.VisionTransformer',
        arch='deit-small',
        num_layers=12,
        drop_path_rate=0.1,
        out_indices=(2, 5, 8, 11),
    ),
    neck=dict(type='MultiLevelNeck', in_channels=[384, 384, 384, 384], out_channels=384, scales=[4, 2, 1, 0.5]),
    decode_head=dict(in_channels=[384, 384, 384, 384]),
    auxiliary_head=dict(in_index=3, in_channels=384),
)
