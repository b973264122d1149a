"""VSSD-Micro on ImageNet-1k, 300 epochs at 224 x 224.
Authors' README: top-1 82.5, 14M parameters, 2.3 GFLOPs.
    python tools/train.py configs/vssd/vssd-micro_in1k.py
"""

_base_ = ['../_base_/models/classifier_vssd-t.py', '../_base_/settings/in1k-224_vssd-300e.py']
model = dict(backbone=dict(arch='micro', drop_path_rate=0.1), head=dict(in_channels=384))
