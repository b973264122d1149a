"""SOFT-Tiny with the normalized kernel and average pooling for landmarks on ImageNet-1k, 300 epochs at 224 x 224.
arXiv preprint of SOFT++, Table 8: top-1 79.3, 12.96M parameters, 1.9 GFLOPs.
    python tools/train.py configs/soft/soft-t-norm-pool_in1k.py
"""

_base_ = ['../_base_/models/classifier_soft-t.py', '../_base_/settings/in1k-224_soft-300e.py']
model = dict(backbone=dict(attn_norm=True, sampler='pool'))
