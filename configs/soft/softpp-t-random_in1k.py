"""SOFT++-Tiny with random landmarks on ImageNet-1k, 300 epochs at 224 x 224.
Paper, Table 10: top-1 80.8, 12.96M parameters, 1.9 GFLOPs.
    python tools/train.py configs/soft/softpp-t-random_in1k.py
"""

_base_ = ['../_base_/models/classifier_softpp-t.py', '../_base_/settings/in1k-224_soft-300e.py']
model = dict(backbone=dict(sampler='random'))
