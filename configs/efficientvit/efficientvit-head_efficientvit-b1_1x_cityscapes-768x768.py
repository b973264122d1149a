"""EfficientViT-B1 with its own head on Cityscapes, 1x (40k iterations).
Authors' README: mIoU 80.547, 4.8M parameters, 25 GFLOPs at 1024 x 2048.
    python tools/train.py configs/efficientvit/efficientvit-head_efficientvit-b1_1x_cityscapes-768x768.py
"""

_base_ = [
    '../_base_/models/efficientvit-head_efficientvit-b1_cityscapes.py',
    '../_base_/settings/cityscapes-768x768_swin-1x.py',
]
