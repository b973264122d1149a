"""UperNet with EfficientViT-B1 on Cityscapes, 1x (40k iterations).
python tools/train.py configs/efficientvit/upernet_efficientvit-b1_1x_cityscapes-768x768.py
"""

_base_ = ['../_base_/models/upernet_efficientvit-b1.py', '../_base_/settings/cityscapes-768x768_swin-1x.py']
model = _base_.cityscapes_model
