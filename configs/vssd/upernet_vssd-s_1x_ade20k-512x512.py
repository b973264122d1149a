"""UperNet with VSSD-S on ADE20K, 1x (160k iterations). The authors' code has this config, and no result of it.
python tools/train.py configs/vssd/upernet_vssd-s_1x_ade20k-512x512.py
"""

_base_ = ['../_base_/models/upernet_vssd-t.py', '../_base_/settings/ade20k-512x512_swin-1x.py']
pretrained = 'https://huggingface.co/YuhengSSS/VSSD/resolve/main/vssd_small_best_ema.pth#/vssd_small_best_ema.pth'
model = dict(backbone=dict(arch='small', drop_path_rate=0.4))
