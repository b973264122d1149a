"""Softmax attention in SOFT++-Tiny's pyramid on ImageNet-1k, 300 epochs at 224 x 224.
SOFT++ paper, Table 2: top-1 80.0; it prints the sizes and speeds of SOFT-Tiny's pyramid beside it.
    python tools/train.py configs/attention_zoo/softpp-t-softmax_in1k.py
"""

_base_ = ['../_base_/models/classifier_softpp-t.py', '../_base_/settings/in1k-224_soft-300e.py']
model = dict(backbone=dict(attention=dict(type='mmlinattn.SoftmaxAttention')))
