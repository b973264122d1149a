_base_ = './retinanet_fpn.py'
pretrained = 'https://github.com/SwinTransformer/storage/releases/download/v1.0.0/swin_tiny_patch4_window7_224.pth'
model = dict(
    backbone=dict(type='mmlinattn.SwinTransformer', arch='tiny', drop_path_rate=0.2, pad_small_map=True),
    neck=dict(in_channels=[192, 384, 768]),
)
