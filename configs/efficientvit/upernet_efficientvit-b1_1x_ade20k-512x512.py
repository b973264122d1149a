"""UperNet with EfficientViT-B1 on ADE20K, 1x (160k iterations).
python tools/train.py configs/efficientvit/upernet_efficientvit-b1_1x_ade20k-512x512.py
"""

_base_ = ['../_base_/models/upernet_efficientvit-b1.py', '../_base_/settings/ade20k-512x512_swin-1x.py']
