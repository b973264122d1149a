"""SOFT-Tiny with the normalized kernel and patches that do not overlap on ImageNet-1k, 300 epochs at 224 x 224.
arXiv preprint of SOFT++, Table 9b: top-1 77.4.
    python tools/train.py configs/soft/soft-t-norm-patch_in1k.py
"""

_base_ = ['../_base_/models/classifier_soft-t.py', '../_base_/settings/in1k-224_soft-300e.py']
model = dict(backbone=dict(attn_norm=True, patch_embed='patch'))
