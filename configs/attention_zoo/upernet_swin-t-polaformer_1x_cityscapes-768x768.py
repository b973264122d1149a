"""UperNet with Pola-Swin-T on Cityscapes, 1x (40k iterations).
python tools/train.py configs/attention_zoo/upernet_swin-t-polaformer_1x_cityscapes-768x768.py
"""

_base_ = ['../_base_/models/upernet_swin-t.py', '../_base_/settings/cityscapes-768x768_swin-1x.py']
model = dict(backbone=dict(attention='polaformer'), **_base_.cityscapes_model)
