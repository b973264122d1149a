"""EfficientViT-L2 with its own head on ADE20K, 3x (480k iterations).
python tools/train.py configs/efficientvit/efficientvit-head_efficientvit-l2_3x_ade20k-512x512.py
"""

_base_ = [
    '../_base_/models/efficientvit-head_efficientvit-l1_ade20k.py',
    '../_base_/settings/ade20k-512x512_swin-3x.py',
]
pretrained = (
    'https://huggingface.co/han-cai/efficientvit-cls/resolve/main/efficientvit_l2_r224.pt#/efficientvit_l2_r224.pth'
)
model = dict(backbone=dict(arch='l2'))
