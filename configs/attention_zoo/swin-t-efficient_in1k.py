"""Swin-T with efficient attention on ImageNet-1k, 300 epochs at 224 x 224.
ELFATT paper, Swin-T-EFFATT: top-1 82.1, 28M parameters, 4.55 GFLOPs.
    python tools/train.py configs/attention_zoo/swin-t-efficient_in1k.py
"""

_base_ = ['../_base_/models/classifier_swin-t.py', '../_base_/settings/in1k-224_cswin-300e.py']
model = dict(backbone=dict(attention='efficient'))
