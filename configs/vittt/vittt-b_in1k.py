"""ViT^3-B on ImageNet-1k, 300 epochs at 224 x 224.
Authors' README: top-1 82.6, 90M parameters, 18.0 GFLOPs.
    python tools/train.py configs/vittt/vittt-b_in1k.py
"""

_base_ = ['../_base_/models/classifier_vittt-t.py', '../_base_/settings/in1k-224_swin-300e.py']
model = dict(backbone=dict(arch='base', drop_path_rate=0.4), head=dict(in_channels=768))
optim_wrapper = dict(type='AmpOptimWrapper')
