"""UperNet with SOFT++-Medium on Cityscapes, 1x (40k iterations). Paper: mIoU 82.0.
python tools/train.py configs/soft/upernet_softpp-m_1x_cityscapes-768x768.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_softpp-s.py', '../_base_/settings/cityscapes-768x768_soft-1x.py']
model = dict(backbone=dict(arch='medium', drop_path_rate=0.3), **_base_.cityscapes_model)
