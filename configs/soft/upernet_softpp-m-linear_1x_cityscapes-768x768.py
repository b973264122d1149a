"""UperNet with linear SOFT++-Medium on Cityscapes, 1x (40k iterations).
python tools/train.py configs/soft/upernet_softpp-m-linear_1x_cityscapes-768x768.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_softpp-s-linear.py', '../_base_/settings/cityscapes-768x768_soft-1x.py']
model = dict(backbone=dict(arch='medium', drop_path_rate=0.3), **_base_.cityscapes_model)
