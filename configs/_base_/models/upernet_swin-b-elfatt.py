_base_ = './upernet_swin-t-elfatt.py'
model = dict(
    backbone=dict(arch='base', drop_path_rate=0.6),
    decode_head=dict(in_channels=[128, 256, 512, 1024]),
    auxiliary_head=dict(in_channels=512),
)
