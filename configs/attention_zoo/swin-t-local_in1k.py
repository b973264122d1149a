"""Swin-T on ImageNet-1k, 300 epochs at 224 x 224.
This is Swin-T itself. ELFATT paper, Swin-T-LOCAL: top-1 81.4, 28M parameters, 4.51 GFLOPs.
    python tools/train.py configs/attention_zoo/swin-t-local_in1k.py
"""

_base_ = ['../_base_/models/classifier_swin-t.py', '../_base_/settings/in1k-224_cswin-300e.py']
model = dict(backbone=dict(attention='local'))
