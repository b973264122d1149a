"""EfficientViT-B2 with its own head on Cityscapes, 3x (120k iterations).
python tools/train.py configs/efficientvit/efficientvit-head_efficientvit-b2_3x_cityscapes-768x768.py
"""

_base_ = [
    '../_base_/models/efficientvit-head_efficientvit-b1_cityscapes.py',
    '../_base_/settings/cityscapes-768x768_swin-3x.py',
]
pretrained = (
    'https://huggingface.co/han-cai/efficientvit-cls/resolve/main/efficientvit_b2_r224.pt#/efficientvit_b2_r224.pth'
)
model = dict(backbone=dict(arch='b2'), decode_head=dict(in_channels=[96, 192, 384], channels=96))
