"""UperNet with Swin-T-ELFATT on ADE20K, 3x (480k iterations).
python tools/train.py configs/elfatt/upernet_swin-t-elfatt_3x_ade20k-512x512.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_swin-t.py', '../_base_/settings/ade20k-512x512_swin-3x.py']
model = dict(backbone=dict(attention='elfatt'))
