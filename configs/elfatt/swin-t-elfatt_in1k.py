"""Swin-T-ELFATT on ImageNet-1k, 300 epochs at 224 x 224. Paper: top-1 82.7, 30M parameters, 4.99 GFLOPs.
python tools/train.py configs/elfatt/swin-t-elfatt_in1k.py
"""

_base_ = ['../_base_/models/classifier_swin-t.py', '../_base_/settings/in1k-224_cswin-300e.py']
model = dict(backbone=dict(attention='elfatt'))
