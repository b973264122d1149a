"""SOFT++-Tiny with 64 landmarks on ImageNet-1k, 300 epochs at 224 x 224.
Paper, Table 9: top-1 80.9, 2.0 GFLOPs.
The paper does not say how other numbers than 49 are sampled; pooling works for any square.
    python tools/train.py configs/soft/softpp-t-m64_in1k.py
"""

_base_ = ['../_base_/models/classifier_softpp-t.py', '../_base_/settings/in1k-224_soft-300e.py']
model = dict(backbone=dict(sampler='pool', num_landmarks=64))
