"""EfficientViT-L2 with its own head on ADE20K, 1x (160k iterations).
Authors' README: mIoU 50.702, 51M parameters, 45 GFLOPs at 512 x 512.
    python tools/train.py configs/efficientvit/efficientvit-head_efficientvit-l2_1x_ade20k-512x512.py
"""

_base_ = [
    '../_base_/models/efficientvit-head_efficientvit-l1_ade20k.py',
    '../_base_/settings/ade20k-512x512_swin-1x.py',
]
pretrained = (
    'https://huggingface.co/han-cai/efficientvit-cls/resolve/main/efficientvit_l2_r224.pt#/efficientvit_l2_r224.pth'
)
model = dict(backbone=dict(arch='l2'))
