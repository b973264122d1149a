"""UperNet with linear SOFT++-Tiny on Cityscapes, 1x (40k iterations).
python tools/train.py configs/soft/upernet_softpp-t-linear_1x_cityscapes-768x768.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_softpp-t-linear.py', '../_base_/settings/cityscapes-768x768_soft-1x.py']
model = _base_.cityscapes_model
