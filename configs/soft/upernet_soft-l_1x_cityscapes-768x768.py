"""UperNet with SOFT-Large (normalized) on Cityscapes, 1x (40k iterations).
python tools/train.py configs/soft/upernet_soft-l_1x_cityscapes-768x768.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_soft-s.py', '../_base_/settings/cityscapes-768x768_soft-1x.py']
model = dict(backbone=dict(arch='large', drop_path_rate=0.3), **_base_.cityscapes_model)
