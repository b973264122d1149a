"""EfficientViT-B0 with its own head on Cityscapes, 1x (40k iterations).
Authors' README: mIoU 75.653, 0.7M parameters, 4.4 GFLOPs at 1024 x 2048.
    python tools/train.py configs/efficientvit/efficientvit-head_efficientvit-b0_1x_cityscapes-768x768.py
"""

_base_ = [
    '../_base_/models/efficientvit-head_efficientvit-b1_cityscapes.py',
    '../_base_/settings/cityscapes-768x768_swin-1x.py',
]
pretrained = None  # no public classifier
model = dict(backbone=dict(arch='b0'), decode_head=dict(in_channels=[32, 64, 128], channels=32, num_blocks=1))
