_base_ = './retinanet_fpn.py'
pretrained = (
    'https://huggingface.co/han-cai/efficientvit-cls/resolve/main/efficientvit_b1_r224.pt#/efficientvit_b1_r224.pth'
)
model = dict(
    backbone=dict(
        type='mmlinattn.EfficientViT', arch='b1', drop_path_rate=0.05, norm_cfg=dict(type='SyncBN', requires_grad=True)
    ),
    neck=dict(in_channels=[64, 128, 256]),
)
