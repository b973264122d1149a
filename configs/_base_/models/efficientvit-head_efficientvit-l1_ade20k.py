_base_ = './efficientvit-head_efficientvit-b1_ade20k.py'
pretrained = (
    'https://huggingface.co/han-cai/efficientvit-cls/resolve/main/efficientvit_l1_r224.pt#/efficientvit_l1_r224.pth'
)
model = dict(
    backbone=dict(arch='l1', drop_path_rate=0.1),
    decode_head=dict(
        in_channels=[128, 256, 512],
        channels=128,
        block='fused',
        last_ratio=8,
        norm_cfg=dict(eps=1e-7),
        act_cfg=dict(type='GELU', approximate='tanh'),
    ),
)
