"""Mask2Former with Swin-T-ELFATT on ADE20K, 1x (160k iterations).
python tools/train.py configs/elfatt/mask2former_swin-t-elfatt_1x_ade20k-512x512.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask2former_ade20k.py', '../_base_/settings/ade20k-512x512_mask2former-1x.py']
pretrained = 'https://github.com/SwinTransformer/storage/releases/download/v1.0.0/swin_tiny_patch4_window7_224.pth'
model = dict(
    backbone=dict(type='mmlinattn.SwinTransformer', arch='tiny', attention='elfatt', drop_path_rate=0.2),
    decode_head=dict(in_channels=[96, 192, 384, 768]),
)
