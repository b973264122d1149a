"""RAVLT-T on ImageNet-1k, 300 epochs at 224 x 224.
Authors' README: 15M parameters, 2.4 GFLOPs.
    python tools/train.py configs/ravlt/ravlt-t_in1k.py
"""

_base_ = ['../_base_/models/classifier_ravlt-t.py', '../_base_/settings/in1k-224_ravlt-300e.py']
