"""MLLA-T on ImageNet-1k, 300 epochs at 224 x 224.
Authors' README: top-1 83.5, 25M parameters, 4.2 GFLOPs.
Without self-distillation, which the figure has.
    python tools/train.py configs/mlla/mlla-t_in1k.py
"""

_base_ = ['../_base_/models/classifier_mlla-t.py', '../_base_/settings/in1k-224_mlla-300e.py']
