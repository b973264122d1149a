_base_ = './retinanet_fpn.py'
model = dict(
    backbone=dict(
        type='mmlinattn.SOFT',
        arch='tiny',
        attn_norm=True,
        drop_path_rate=0.1,
        norm_cfg=dict(type='SyncBN', requires_grad=True),
    ),
    neck=dict(in_channels=[128, 320, 512]),
)
