_base_ = './upernet.py'
pretrained = 'https://github.com/SwinTransformer/storage/releases/download/v1.0.0/swin_tiny_patch4_window7_224.pth'
model = dict(
    backbone=dict(type='mmlinattn.SwinTransformer', arch='tiny', drop_path_rate=0.2, pad_small_map=True),
    decode_head=dict(in_channels=[96, 192, 384, 768]),
    auxiliary_head=dict(in_channels=384),
)
