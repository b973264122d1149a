"""Swin-B-ELFATT on ImageNet-1k, 300 epochs at 224 x 224. Paper: top-1 84.5, 91M parameters, 16.46 GFLOPs.
python tools/train.py configs/elfatt/swin-b-elfatt_in1k.py
"""

_base_ = ['../_base_/models/classifier_swin-t.py', '../_base_/settings/in1k-224_cswin-base-300e.py']
model = dict(backbone=dict(arch='base', attention='elfatt', drop_path_rate=0.5), head=dict(in_channels=1024))
