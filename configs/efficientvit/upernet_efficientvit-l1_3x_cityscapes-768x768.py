"""UperNet with EfficientViT-L1 on Cityscapes, 3x (120k iterations).
python tools/train.py configs/efficientvit/upernet_efficientvit-l1_3x_cityscapes-768x768.py
"""

_base_ = ['../_base_/models/upernet_efficientvit-b1.py', '../_base_/settings/cityscapes-768x768_swin-3x.py']
pretrained = (
    'https://huggingface.co/han-cai/efficientvit-cls/resolve/main/efficientvit_l1_r224.pt#/efficientvit_l1_r224.pth'
)
model = _base_.cityscapes_model
model.update(backbone=dict(arch='l1', drop_path_rate=0.1))
model.decode_head.update(in_channels=[64, 128, 256, 512])
model.auxiliary_head.update(in_channels=256)
