"""EfficientViT-B3 with its own head on ADE20K, 1x (160k iterations).
Authors' README: mIoU 49.013, 39M parameters, 22 GFLOPs at 512 x 512.
    python tools/train.py configs/efficientvit/efficientvit-head_efficientvit-b3_1x_ade20k-512x512.py
"""

_base_ = [
    '../_base_/models/efficientvit-head_efficientvit-b1_ade20k.py',
    '../_base_/settings/ade20k-512x512_swin-1x.py',
]
pretrained = (
    'https://huggingface.co/han-cai/efficientvit-cls/resolve/main/efficientvit_b3_r224.pt#/efficientvit_b3_r224.pth'
)
model = dict(backbone=dict(arch='b3', drop_path_rate=0.1), decode_head=dict(in_channels=[128, 256, 512], channels=128))
