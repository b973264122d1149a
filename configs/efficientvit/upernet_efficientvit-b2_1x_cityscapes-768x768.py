"""UperNet with EfficientViT-B2 on Cityscapes, 1x (40k iterations).
python tools/train.py configs/efficientvit/upernet_efficientvit-b2_1x_cityscapes-768x768.py
"""

_base_ = ['../_base_/models/upernet_efficientvit-b1.py', '../_base_/settings/cityscapes-768x768_swin-1x.py']
pretrained = (
    'https://huggingface.co/han-cai/efficientvit-cls/resolve/main/efficientvit_b2_r224.pt#/efficientvit_b2_r224.pth'
)
model = _base_.cityscapes_model
model.update(backbone=dict(arch='b2'))
model.decode_head.update(in_channels=[48, 96, 192, 384])
model.auxiliary_head.update(in_channels=192)
