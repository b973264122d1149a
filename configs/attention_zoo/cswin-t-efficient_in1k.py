"""CSWin-T with efficient attention on ImageNet-1k, 300 epochs at 224 x 224.
ELFATT paper: top-1 82.6, 20M parameters, 4.35 GFLOPs.
    python tools/train.py configs/attention_zoo/cswin-t-efficient_in1k.py
"""

_base_ = ['../_base_/models/classifier_cswin-t.py', '../_base_/settings/in1k-224_cswin-300e.py']
model = dict(backbone=dict(attention='efficient'))
