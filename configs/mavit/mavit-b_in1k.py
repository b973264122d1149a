"""MAViT-B on ImageNet-1k, 300 epochs at 224 x 224.
The paper: top-1 85.7, 50M parameters, 9.9 GFLOPs.
    python tools/train.py configs/mavit/mavit-b_in1k.py
"""

_base_ = ['../_base_/models/classifier_mavit-t.py', '../_base_/settings/in1k-224_ravlt-300e.py']
model = dict(backbone=dict(arch='base', drop_path_rate=0.4))
