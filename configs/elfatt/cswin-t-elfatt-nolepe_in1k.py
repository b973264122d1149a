"""CSWin-T-ELFATT without LePE on ImageNet-1k, 300 epochs at 224 x 224.
ELFATT paper, Table III: top-1 82.9, 20M parameters, 4.54 GFLOPs.
    python tools/train.py configs/elfatt/cswin-t-elfatt-nolepe_in1k.py
"""

_base_ = ['../_base_/models/classifier_cswin-t.py', '../_base_/settings/in1k-224_cswin-300e.py']
model = dict(backbone=dict(attention='elfatt', lepe=False))
