"""SOFT++-Tiny with patches that do not overlap on ImageNet-1k, 300 epochs at 224 x 224. Paper, Table 11b: top-1 78.4.
python tools/train.py configs/soft/softpp-t-patch_in1k.py
"""

_base_ = ['../_base_/models/classifier_softpp-t.py', '../_base_/settings/in1k-224_soft-300e.py']
model = dict(backbone=dict(patch_embed='patch'))
