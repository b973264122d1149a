"""CSWin-T-ELFATT with blocks of 49 tokens on ImageNet-1k, 300 epochs at 224 x 224.
ELFATT paper, Table II: top-1 82.5, 20M parameters, 4.37 GFLOPs.
    python tools/train.py configs/elfatt/cswin-t-elfatt-b49_in1k.py
"""

_base_ = ['../_base_/models/classifier_cswin-t.py', '../_base_/settings/in1k-224_cswin-300e.py']
model = dict(backbone=dict(attention='elfatt', block_sizes=49))
