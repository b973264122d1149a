"""EfficientViT-B3 with its own head on ADE20K, 3x (480k iterations).
python tools/train.py configs/efficientvit/efficientvit-head_efficientvit-b3_3x_ade20k-512x512.py
"""

_base_ = [
    '../_base_/models/efficientvit-head_efficientvit-b1_ade20k.py',
    '../_base_/settings/ade20k-512x512_swin-3x.py',
]
pretrained = (
    'https://huggingface.co/han-cai/efficientvit-cls/resolve/main/efficientvit_b3_r224.pt#/efficientvit_b3_r224.pth'
)
model = dict(backbone=dict(arch='b3', drop_path_rate=0.1), decode_head=dict(in_channels=[128, 256, 512], channels=128))
