"""EfficientViT-L1 with its own head on Cityscapes, 3x (120k iterations).
python tools/train.py configs/efficientvit/efficientvit-head_efficientvit-l1_3x_cityscapes-768x768.py
"""

_base_ = [
    '../_base_/models/efficientvit-head_efficientvit-l1_cityscapes.py',
    '../_base_/settings/cityscapes-768x768_swin-3x.py',
]
