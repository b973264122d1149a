"""SOFT++-Small on ImageNet-1k, 300 epochs at 224 x 224. Paper: top-1 82.6, 27M parameters.
python tools/train.py configs/soft/softpp-s_in1k.py
"""

_base_ = ['../_base_/models/classifier_softpp-t.py', '../_base_/settings/in1k-224_soft-300e.py']
model = dict(backbone=dict(arch='small'), head=dict(in_channels=768))
