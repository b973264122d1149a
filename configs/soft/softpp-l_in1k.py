"""SOFT++-Large on ImageNet-1k, 300 epochs at 224 x 224. Paper: top-1 84.1, 85M parameters.
The learning rate, 1e-3, is ours: the paper prints none, and its authors' code has no config of this size.
    python tools/train.py configs/soft/softpp-l_in1k.py
"""

_base_ = ['../_base_/models/classifier_softpp-t.py', '../_base_/settings/in1k-224_soft-300e.py']
model = dict(backbone=dict(arch='large'), head=dict(in_channels=1024))
