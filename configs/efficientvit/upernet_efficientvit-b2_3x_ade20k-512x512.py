"""UperNet with EfficientViT-B2 on ADE20K, 3x (480k iterations).
python tools/train.py configs/efficientvit/upernet_efficientvit-b2_3x_ade20k-512x512.py
"""

_base_ = ['../_base_/models/upernet_efficientvit-b1.py', '../_base_/settings/ade20k-512x512_swin-3x.py']
pretrained = (
    'https://huggingface.co/han-cai/efficientvit-cls/resolve/main/efficientvit_b2_r224.pt#/efficientvit_b2_r224.pth'
)
model = dict(
    backbone=dict(arch='b2'), decode_head=dict(in_channels=[48, 96, 192, 384]), auxiliary_head=dict(in_channels=192)
)
