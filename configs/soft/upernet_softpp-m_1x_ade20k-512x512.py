"""UperNet with SOFT++-Medium on ADE20K, 1x (160k iterations). Paper: mIoU 48.9, 81M parameters.
python tools/train.py configs/soft/upernet_softpp-m_1x_ade20k-512x512.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_softpp-s.py', '../_base_/settings/ade20k-512x512_soft-1x.py']
model = dict(backbone=dict(arch='medium'))
