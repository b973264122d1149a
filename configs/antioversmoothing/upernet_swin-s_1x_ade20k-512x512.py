"""UperNet with Swin-S on ADE20K, 1x (160k iterations).
python tools/train.py configs/antioversmoothing/upernet_swin-s_1x_ade20k-512x512.py
"""

_base_ = ['../_base_/models/upernet_swin-s.py', '../_base_/settings/ade20k-512x512_swin-1x.py']
