"""EfficientViT-L2 with its own head on Cityscapes, 1x (40k iterations).
Authors' README: mIoU 83.228, 53M parameters, 396 GFLOPs at 1024 x 2048.
    python tools/train.py configs/efficientvit/efficientvit-head_efficientvit-l2_1x_cityscapes-768x768.py
"""

_base_ = [
    '../_base_/models/efficientvit-head_efficientvit-l1_cityscapes.py',
    '../_base_/settings/cityscapes-768x768_swin-1x.py',
]
pretrained = (
    'https://huggingface.co/han-cai/efficientvit-cls/resolve/main/efficientvit_l2_r224.pt#/efficientvit_l2_r224.pth'
)
model = dict(backbone=dict(arch='l2'), decode_head=dict(num_blocks=5))
