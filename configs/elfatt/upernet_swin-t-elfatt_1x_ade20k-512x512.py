"""UperNet with Swin-T-ELFATT on ADE20K, 1x (160k iterations). Paper: mIoU 47.7, 62M parameters.
python tools/train.py configs/elfatt/upernet_swin-t-elfatt_1x_ade20k-512x512.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_swin-t.py', '../_base_/settings/ade20k-512x512_swin-1x.py']
model = dict(backbone=dict(attention='elfatt'))
