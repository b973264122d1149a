"""UperNet with SOFT-Tiny (normalized) on Cityscapes, 3x (120k iterations).
python tools/train.py configs/soft/upernet_soft-t_3x_cityscapes-768x768.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_soft-s.py', '../_base_/settings/cityscapes-768x768_soft-3x.py']
model = dict(backbone=dict(arch='tiny'), **_base_.cityscapes_model)
