_base_ = './upernet_softpp-t.py'
model = dict(
    backbone=dict(arch='large'),
    decode_head=dict(in_channels=[128, 256, 512, 1024]),
    auxiliary_head=dict(in_channels=512),
)
