"""CSWin-T with softmax attention on ImageNet-1k, 300 epochs at 224 x 224.
ELFATT paper, CSWin-T-GLOBAL: top-1 83.1, 20M parameters, 7.60 GFLOPs.
    python tools/train.py configs/attention_zoo/cswin-t-global_in1k.py
"""

_base_ = ['../_base_/models/classifier_cswin-t.py', '../_base_/settings/in1k-224_cswin-300e.py']
model = dict(backbone=dict(attention='global'))
