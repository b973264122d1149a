"""ViT-Small/16 with one projection for queries and keys on ImageNet-1k, 300 epochs at 224 x 224.
SOFT++ paper, Table 8: top-1 80.5 (80.8 with two projections, vit-s_in1k.py).
    python tools/train.py configs/soft/vit-s-sharedqk_in1k.py
"""

_base_ = ['../_base_/models/classifier_vit-s.py', '../_base_/settings/in1k-224_soft-300e.py']
model = dict(backbone=dict(attention=dict(type='mmlinattn.SoftmaxAttention', shared_qk=True)))
