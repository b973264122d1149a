_base_ = './mask-rcnn_swin-t.py'
pretrained = 'https://github.com/SwinTransformer/storage/releases/download/v1.0.0/swin_base_patch4_window7_224.pth'
model = dict(
    backbone=dict(arch='base', attention='elfatt', drop_path_rate=0.6), neck=dict(in_channels=[128, 256, 512, 1024])
)
