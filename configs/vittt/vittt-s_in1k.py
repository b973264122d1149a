"""ViT^3-S on ImageNet-1k, 300 epochs at 224 x 224.
Authors' README: top-1 81.6, 24M parameters, 4.8 GFLOPs.
    python tools/train.py configs/vittt/vittt-s_in1k.py
"""

_base_ = ['../_base_/models/classifier_vittt-t.py', '../_base_/settings/in1k-224_swin-300e.py']
model = dict(backbone=dict(arch='small', drop_path_rate=0.1), head=dict(in_channels=384))
optim_wrapper = dict(type='AmpOptimWrapper')
