"""UperNet with linear SOFT++-Medium on Cityscapes, 3x (120k iterations).
python tools/train.py configs/soft/upernet_softpp-m-linear_3x_cityscapes-768x768.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_softpp-s-linear.py', '../_base_/settings/cityscapes-768x768_soft-3x.py']
model = dict(backbone=dict(arch='medium', drop_path_rate=0.3), **_base_.cityscapes_model)
