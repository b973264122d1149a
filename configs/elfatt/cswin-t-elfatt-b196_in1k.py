"""CSWin-T-ELFATT with blocks of 196 tokens on ImageNet-1k, 300 epochs at 224 x 224.
ELFATT paper, Table II: top-1 83.1, 20M parameters, 4.56 GFLOPs. Its variants are Tables III to V.
    python tools/train.py configs/elfatt/cswin-t-elfatt-b196_in1k.py
"""

_base_ = ['../_base_/models/classifier_cswin-t.py', '../_base_/settings/in1k-224_cswin-300e.py']
model = dict(backbone=dict(attention='elfatt'))
