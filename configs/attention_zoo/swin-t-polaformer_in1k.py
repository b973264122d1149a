"""Pola-Swin-T on ImageNet-1k, 300 epochs at 224 x 224.
Authors' README: top-1 82.6.
    python tools/train.py configs/attention_zoo/swin-t-polaformer_in1k.py
"""

_base_ = ['../_base_/models/classifier_swin-t.py', '../_base_/settings/in1k-224_swin-300e.py']
model = dict(backbone=dict(attention='polaformer'))
