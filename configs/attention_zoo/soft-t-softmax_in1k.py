"""Softmax attention in SOFT-Tiny's pyramid on ImageNet-1k, 300 epochs at 224 x 224.
SOFT paper, Table 1: top-1 79.1, 13M parameters, 3.9 GFLOPs.
    python tools/train.py configs/attention_zoo/soft-t-softmax_in1k.py
"""

_base_ = ['../_base_/models/classifier_soft-t.py', '../_base_/settings/in1k-224_soft-300e.py']
model = dict(backbone=dict(attention=dict(type='mmlinattn.SoftmaxAttention')))
