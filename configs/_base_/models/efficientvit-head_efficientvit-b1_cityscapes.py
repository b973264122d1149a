"""EfficientViT's own segmentor for Cityscapes, which tests whole images."""

_base_ = './efficientvit-head_efficientvit-b1_ade20k.py'
model = dict(data_preprocessor=dict(size=(768, 768)), decode_head=dict(last_ratio=4, num_classes=19))
