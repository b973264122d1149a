"""UperNet with MLLA-T on ADE20K, 1x (160k iterations).
python tools/train.py configs/mlla/upernet_mlla-t_1x_ade20k-512x512.py
"""

_base_ = ['../_base_/models/upernet_mlla-t.py', '../_base_/settings/ade20k-512x512_swin-1x.py']
