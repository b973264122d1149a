"""FLatten-CSWin-T on ImageNet-1k, 300 epochs at 224 x 224.
ELFATT paper: top-1 83.1, 21M parameters, 4.34 GFLOPs.
    python tools/train.py configs/attention_zoo/cswin-t-flatten_in1k.py
"""

_base_ = ['../_base_/models/classifier_cswin-t.py', '../_base_/settings/in1k-224_cswin-300e.py']
model = dict(backbone=dict(attention='flatten'))
