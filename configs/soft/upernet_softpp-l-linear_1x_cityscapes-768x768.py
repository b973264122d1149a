"""UperNet with linear SOFT++-Large on Cityscapes, 1x (40k iterations).
python tools/train.py configs/soft/upernet_softpp-l-linear_1x_cityscapes-768x768.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_softpp-l-linear.py', '../_base_/settings/cityscapes-768x768_soft-1x.py']
model = dict(backbone=dict(drop_path_rate=0.3), **_base_.cityscapes_model)
