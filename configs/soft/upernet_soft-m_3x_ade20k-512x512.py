"""UperNet with SOFT-Medium (normalized) on ADE20K, 3x (480k iterations). Paper: 76M parameters.
python tools/train.py configs/soft/upernet_soft-m_3x_ade20k-512x512.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_soft-m.py', '../_base_/settings/ade20k-512x512_soft-3x.py']
