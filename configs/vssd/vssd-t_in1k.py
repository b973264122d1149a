"""VSSD-T on ImageNet-1k, 300 epochs at 224 x 224.
Authors' README: top-1 83.6, 24M parameters, 4.5 GFLOPs.
    python tools/train.py configs/vssd/vssd-t_in1k.py
"""

_base_ = ['../_base_/models/classifier_vssd-t.py', '../_base_/settings/in1k-224_vssd-300e.py']
