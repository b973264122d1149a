"""CSWin-T-ELFATT on ImageNet-1k, 300 epochs at 224 x 224. Paper: top-1 83.1, 20M parameters, 4.44 GFLOPs.
Blocks of 49, 49 and 196 tokens, as in the paper's Table I. Detectors and segmentors have 196 in every level, as in its
other tables; the weights have the same shapes either way.
    python tools/train.py configs/elfatt/cswin-t-elfatt_in1k.py
"""

_base_ = ['../_base_/models/classifier_cswin-t.py', '../_base_/settings/in1k-224_cswin-300e.py']
model = dict(backbone=dict(attention='elfatt', block_sizes=(49, 49, 196)))
