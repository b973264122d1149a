_base_ = './upernet_cswin-t-elfatt.py'
model = dict(
    backbone=dict(arch='b36292', drop_path_rate=0.6),
    decode_head=dict(in_channels=[96, 192, 384, 768]),
    auxiliary_head=dict(in_channels=384),
)
