_base_ = './upernet.py'
model = dict(
    backbone=dict(type='mmlinattn.CSWinTransformer', arch='t24181', drop_path_rate=0.2),
    decode_head=dict(in_channels=[64, 128, 256, 512]),
    auxiliary_head=dict(in_channels=256),
)
