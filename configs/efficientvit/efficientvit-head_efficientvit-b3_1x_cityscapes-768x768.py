"""EfficientViT-B3 with its own head on Cityscapes, 1x (40k iterations).
Authors' README: mIoU 83.016, 40M parameters, 179 GFLOPs at 1024 x 2048.
    python tools/train.py configs/efficientvit/efficientvit-head_efficientvit-b3_1x_cityscapes-768x768.py
"""

_base_ = [
    '../_base_/models/efficientvit-head_efficientvit-b1_cityscapes.py',
    '../_base_/settings/cityscapes-768x768_swin-1x.py',
]
pretrained = (
    'https://huggingface.co/han-cai/efficientvit-cls/resolve/main/efficientvit_b3_r224.pt#/efficientvit_b3_r224.pth'
)
model = dict(backbone=dict(arch='b3', drop_path_rate=0.1), decode_head=dict(in_channels=[128, 256, 512], channels=128))
