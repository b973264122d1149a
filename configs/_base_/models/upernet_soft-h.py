_base_ = './upernet_soft-s.py'
model = dict(
    backbone=dict(arch='huge'), decode_head=dict(in_channels=[64, 128, 352, 512]), auxiliary_head=dict(in_channels=352)
)
