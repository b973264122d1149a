"""RAVLT-L on ImageNet-1k, 300 epochs at 224 x 224.
Authors' README: 95M parameters, 16.0 GFLOPs.
    python tools/train.py configs/ravlt/ravlt-l_in1k.py
"""

_base_ = ['../_base_/models/classifier_ravlt-t.py', '../_base_/settings/in1k-224_ravlt-300e.py']
model = dict(backbone=dict(arch='large', drop_path_rate=0.55), neck=dict(in_channels=640))
