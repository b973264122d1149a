"""VSSD-B on ImageNet-1k, 300 epochs at 224 x 224.
Authors' README: top-1 84.7, 89M parameters, 16.1 GFLOPs.
    python tools/train.py configs/vssd/vssd-b_in1k.py
"""

_base_ = ['../_base_/models/classifier_vssd-t.py', '../_base_/settings/in1k-224_vssd-lr6e-4-300e.py']
model = dict(backbone=dict(arch='base', drop_path_rate=0.6), head=dict(in_channels=768))
