"""ViT^3-T on ImageNet-1k, 300 epochs at 224 x 224.
Authors' README: top-1 76.5, 6M parameters, 1.2 GFLOPs.
    python tools/train.py configs/vittt/vittt-t_in1k.py
"""

_base_ = ['../_base_/models/classifier_vittt-t.py', '../_base_/settings/in1k-224_swin-300e.py']
optim_wrapper = dict(type='AmpOptimWrapper')
