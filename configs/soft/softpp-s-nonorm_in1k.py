"""SOFT-Small of the SOFT++ paper on ImageNet-1k, 300 epochs at 224 x 224. Paper: top-1 82.5, 27M parameters.
SOFT++'s architecture without its normalized kernel. Such weights suit no other image size.
    python tools/train.py configs/soft/softpp-s-nonorm_in1k.py
"""

_base_ = ['../_base_/models/classifier_softpp-t.py', '../_base_/settings/in1k-224_soft-300e.py']
model = dict(backbone=dict(arch='small', attn_norm=False), head=dict(in_channels=768))
