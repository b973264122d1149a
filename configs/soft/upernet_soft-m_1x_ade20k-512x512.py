"""UperNet with SOFT-Medium (normalized) on ADE20K, 1x (160k iterations). Paper: mIoU 48.0, 76M parameters.
python tools/train.py configs/soft/upernet_soft-m_1x_ade20k-512x512.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_soft-m.py', '../_base_/settings/ade20k-512x512_soft-1x.py']
