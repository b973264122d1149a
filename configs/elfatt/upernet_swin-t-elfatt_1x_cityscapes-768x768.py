"""UperNet with Swin-T-ELFATT on Cityscapes, 1x (40k iterations).
python tools/train.py configs/elfatt/upernet_swin-t-elfatt_1x_cityscapes-768x768.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_swin-t.py', '../_base_/settings/cityscapes-768x768_swin-1x.py']
model = dict(backbone=dict(attention='elfatt'), **_base_.cityscapes_model)
