"""Swin-T with efficient attention on ImageNet-1k, 300 epochs at 224 x 224.

ELFATT paper, Swin-T-EFFATT: 28M parameters, 4.55 GFLOPs.

    python tools/train.py configs/attention_zoo/swin-t-efficient_in1k.py
"""

_base_ = './swin-t-global_in1k.py'

model = dict(backbone=dict(attention='efficient'))
