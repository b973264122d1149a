"""UperNet with SOFT++-Small on Cityscapes, 1x (40k iterations). Paper: mIoU 81.2.
python tools/train.py configs/soft/upernet_softpp-s_1x_cityscapes-768x768.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_softpp-s.py', '../_base_/settings/cityscapes-768x768_soft-1x.py']
model = _base_.cityscapes_model
