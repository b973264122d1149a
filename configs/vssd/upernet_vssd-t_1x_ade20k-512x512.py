"""UperNet with VSSD-T on ADE20K, 1x (160k iterations).
Authors' README: mIoU 47.9 (48.7 on several scales), 53M parameters, 941 GFLOPs.
    python tools/train.py configs/vssd/upernet_vssd-t_1x_ade20k-512x512.py
"""

_base_ = ['../_base_/models/upernet_vssd-t.py', '../_base_/settings/ade20k-512x512_swin-1x.py']
