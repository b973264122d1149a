"""MLLA-B on ImageNet-1k, 300 epochs at 224 x 224.
Authors' README: top-1 85.3, 96M parameters, 16.2 GFLOPs.
Without self-distillation, which the figure has.
    python tools/train.py configs/mlla/mlla-b_in1k.py
"""

_base_ = ['../_base_/models/classifier_mlla-t.py', '../_base_/settings/in1k-224_mlla-b512-300e.py']
model = dict(backbone=dict(arch='base', drop_path_rate=0.5), head=dict(in_channels=768))
