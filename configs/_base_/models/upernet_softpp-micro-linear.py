_base_ = './upernet_softpp-t-linear.py'
model = dict(
    backbone=dict(arch='micro', drop_path_rate=0.0),
    decode_head=dict(in_channels=[32, 64, 96, 160]),
    auxiliary_head=dict(in_channels=96),
)
