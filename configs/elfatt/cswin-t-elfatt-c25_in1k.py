"""CSWin-T-ELFATT with 25 % of the channels in the global half on ImageNet-1k, 300 epochs at 224 x 224.
ELFATT paper, Table V: top-1 83.0, 20M parameters, 4.65 GFLOPs.
    python tools/train.py configs/elfatt/cswin-t-elfatt-c25_in1k.py
"""

_base_ = ['../_base_/models/classifier_cswin-t.py', '../_base_/settings/in1k-224_cswin-300e.py']
model = dict(backbone=dict(attention='elfatt', split_ratio=0.25))
