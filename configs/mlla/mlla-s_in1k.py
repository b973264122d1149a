"""MLLA-S on ImageNet-1k, 300 epochs at 224 x 224.
Authors' README: top-1 84.4, 43M parameters, 7.3 GFLOPs.
Without self-distillation, which the figure has.
    python tools/train.py configs/mlla/mlla-s_in1k.py
"""

_base_ = ['../_base_/models/classifier_mlla-t.py', '../_base_/settings/in1k-224_mlla-b512-300e.py']
model = dict(backbone=dict(arch='small', drop_path_rate=0.3))
