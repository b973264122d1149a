"""EfficientViT-B0 with its own head on Cityscapes, 3x (120k iterations).
python tools/train.py configs/efficientvit/efficientvit-head_efficientvit-b0_3x_cityscapes-768x768.py
"""

_base_ = [
    '../_base_/models/efficientvit-head_efficientvit-b1_cityscapes.py',
    '../_base_/settings/cityscapes-768x768_swin-3x.py',
]
pretrained = None  # no public classifier
model = dict(backbone=dict(arch='b0'), decode_head=dict(in_channels=[32, 64, 128], channels=32, num_blocks=1))
