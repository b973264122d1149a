"""CSWin-T on ImageNet-1k, 300 epochs at 224 x 224.
ELFATT paper, CSWin-T-LOCAL: top-1 82.7, 20M parameters, 4.36 GFLOPs.
    python tools/train.py configs/attention_zoo/cswin-t-local_in1k.py
"""

_base_ = ['../_base_/models/classifier_cswin-t.py', '../_base_/settings/in1k-224_cswin-300e.py']
model = dict(backbone=dict(attention='local'))
