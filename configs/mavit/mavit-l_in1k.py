"""MAViT-L on ImageNet-1k, 300 epochs at 224 x 224.
The paper: top-1 86.0, 98M parameters, 16.1 GFLOPs.
    python tools/train.py configs/mavit/mavit-l_in1k.py
"""

_base_ = ['../_base_/models/classifier_mavit-t.py', '../_base_/settings/in1k-224_ravlt-300e.py']
model = dict(
    backbone=dict(arch='large', drop_path_rate=0.55),
    neck=dict(in_channels=640, out_channels=2560),
    head=dict(in_channels=2560),
)
