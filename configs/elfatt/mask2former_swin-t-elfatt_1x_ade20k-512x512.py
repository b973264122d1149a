"""Mask2Former with Swin-T-ELFATT on ADE20K, 1x (160k iterations).
python tools/train.py configs/elfatt/mask2former_swin-t-elfatt_1x_ade20k-512x512.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask2former_swin-t-elfatt_ade20k.py', '../_base_/settings/ade20k-512x512_mask2former-1x.py']
