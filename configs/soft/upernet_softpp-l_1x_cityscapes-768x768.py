"""UperNet with SOFT++-Large on Cityscapes, 1x (40k iterations). Paper: mIoU 82.6.
python tools/train.py configs/soft/upernet_softpp-l_1x_cityscapes-768x768.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_softpp-l_cityscapes.py', '../_base_/settings/cityscapes-768x768_soft-1x.py']
