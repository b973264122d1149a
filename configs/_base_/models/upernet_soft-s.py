_base_ = './upernet.py'
model = dict(
    backbone=dict(
        type='mmlinattn.SOFT',
        arch='small',
        attn_norm=True,
        drop_path_rate=0.1,
        norm_cfg=dict(type='SyncBN', requires_grad=True),
    ),
    decode_head=dict(in_channels=[64, 128, 320, 512]),
    auxiliary_head=dict(in_channels=320),
)
