"""EfficientViT-L1 with its own head on Cityscapes, 1x (40k iterations).
Authors' README: mIoU 82.716, 40M parameters, 282 GFLOPs at 1024 x 2048.
    python tools/train.py configs/efficientvit/efficientvit-head_efficientvit-l1_1x_cityscapes-768x768.py
"""

_base_ = [
    '../_base_/models/efficientvit-head_efficientvit-l1_cityscapes.py',
    '../_base_/settings/cityscapes-768x768_swin-1x.py',
]
