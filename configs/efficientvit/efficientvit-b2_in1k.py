"""EfficientViT-B2 on ImageNet-1k, 320 epochs at 224 x 224.
Authors' README: top-1 82.100, 24M parameters, 1.6 GFLOPs.
    python tools/train.py configs/efficientvit/efficientvit-b2_in1k.py
"""

_base_ = ['../_base_/models/classifier_efficientvit-b1.py', '../_base_/settings/in1k-224_efficientvit-320e.py']
model = dict(
    backbone=dict(arch='b2'),
    neck=dict(in_channels=384, out_channels=2304, hidden_channels=2560),
    head=dict(in_channels=2560),
)
