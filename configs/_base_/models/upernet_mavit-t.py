_base_ = './upernet_ravlt-s.py'
pretrained = None
model = dict(
    backbone=dict(type='mmlinattn.MAViT', arch='tiny', drop_path_rate=0.1),
    decode_head=dict(in_channels=[64, 128, 256, 512]),
    auxiliary_head=dict(in_channels=256),
)
