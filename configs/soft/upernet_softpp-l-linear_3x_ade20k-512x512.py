"""UperNet with linear SOFT++-Large on ADE20K, 3x (480k iterations).
python tools/train.py configs/soft/upernet_softpp-l-linear_3x_ade20k-512x512.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_softpp-l-linear.py', '../_base_/settings/ade20k-512x512_soft-3x.py']
