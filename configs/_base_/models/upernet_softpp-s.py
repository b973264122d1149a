_base_ = './upernet_softpp-t.py'
model = dict(
    backbone=dict(arch='small'), decode_head=dict(in_channels=[96, 192, 384, 768]), auxiliary_head=dict(in_channels=384)
)
