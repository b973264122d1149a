"""MAViT-S on ImageNet-1k, 300 epochs at 224 x 224.
The paper: top-1 84.7, 27M parameters, 4.6 GFLOPs.
    python tools/train.py configs/mavit/mavit-s_in1k.py
"""

_base_ = ['../_base_/models/classifier_mavit-t.py', '../_base_/settings/in1k-224_ravlt-300e.py']
model = dict(backbone=dict(arch='small', drop_path_rate=0.15))
