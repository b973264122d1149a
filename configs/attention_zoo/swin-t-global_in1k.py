"""Swin-T with softmax attention on ImageNet-1k, 300 epochs at 224 x 224.
ELFATT paper, Swin-T-GLOBAL: top-1 82.4, 28M parameters, 8.81 GFLOPs.
    python tools/train.py configs/attention_zoo/swin-t-global_in1k.py
"""

_base_ = ['../_base_/models/classifier_swin-t.py', '../_base_/settings/in1k-224_cswin-300e.py']
model = dict(backbone=dict(attention='global'))
