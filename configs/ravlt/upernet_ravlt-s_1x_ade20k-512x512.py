"""UperNet with RAVLT-S on ADE20K, 1x (160k iterations, mixed precision).
Authors' README: mIoU 50.7, 55M parameters, 937 GFLOPs.
    python tools/train.py configs/ravlt/upernet_ravlt-s_1x_ade20k-512x512.py
"""

_base_ = ['../_base_/models/upernet_ravlt-s.py', '../_base_/settings/ade20k-512x512_swin-1x.py']
optim_wrapper = dict(type='AmpOptimWrapper')
