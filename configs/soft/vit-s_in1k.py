"""ViT-Small/16 on ImageNet-1k, 300 epochs at 224 x 224. SOFT++ paper, Table 8: top-1 80.8.
Queries and keys have a projection each; vit-s-sharedqk_in1k.py has one for both.
    python tools/train.py configs/soft/vit-s_in1k.py
"""

_base_ = ['../_base_/models/classifier_vit-s.py', '../_base_/settings/in1k-224_soft-300e.py']
