"""UperNet with EfficientViT-L1 on ADE20K, 1x (160k iterations).
python tools/train.py configs/efficientvit/upernet_efficientvit-l1_1x_ade20k-512x512.py
"""

_base_ = ['../_base_/models/upernet_efficientvit-b1.py', '../_base_/settings/ade20k-512x512_swin-1x.py']
pretrained = (
    'https://huggingface.co/han-cai/efficientvit-cls/resolve/main/efficientvit_l1_r224.pt#/efficientvit_l1_r224.pth'
)
model = dict(
    backbone=dict(arch='l1', drop_path_rate=0.1),
    decode_head=dict(in_channels=[64, 128, 256, 512]),
    auxiliary_head=dict(in_channels=256),
)
