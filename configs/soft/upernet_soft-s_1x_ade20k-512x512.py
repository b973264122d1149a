"""UperNet with SOFT-Small (normalized) on ADE20K, 1x (160k iterations). Paper: mIoU 46.2, 54M parameters.
python tools/train.py configs/soft/upernet_soft-s_1x_ade20k-512x512.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_soft-s.py', '../_base_/settings/ade20k-512x512_soft-1x.py']
