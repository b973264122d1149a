_base_ = './upernet_soft-s.py'
model = dict(
    backbone=dict(arch='medium'),
    decode_head=dict(in_channels=[64, 128, 288, 512]),
    auxiliary_head=dict(in_channels=288),
)
