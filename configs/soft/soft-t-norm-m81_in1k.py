"""SOFT-Tiny with the normalized kernel and 81 landmarks on ImageNet-1k, 300 epochs at 224 x 224.
arXiv preprint of SOFT++, Table 7: top-1 78.9, 2.1 GFLOPs.
The paper does not say how other numbers than 49 are sampled; pooling works for any square.
    python tools/train.py configs/soft/soft-t-norm-m81_in1k.py
"""

_base_ = ['../_base_/models/classifier_soft-t.py', '../_base_/settings/in1k-224_soft-300e.py']
model = dict(backbone=dict(attn_norm=True, sampler='pool', num_landmarks=81))
