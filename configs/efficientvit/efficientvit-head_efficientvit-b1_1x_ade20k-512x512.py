"""EfficientViT-B1 with its own head on ADE20K, 1x (160k iterations).
Authors' README: mIoU 42.840, 4.8M parameters, 3.1 GFLOPs at 512 x 512.
    python tools/train.py configs/efficientvit/efficientvit-head_efficientvit-b1_1x_ade20k-512x512.py
"""

_base_ = [
    '../_base_/models/efficientvit-head_efficientvit-b1_ade20k.py',
    '../_base_/settings/ade20k-512x512_swin-1x.py',
]
