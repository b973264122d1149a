"""DeiT-S12 + FeatScale on ImageNet-1k, 300 epochs at 224 x 224.
Paper: top-1 80.9 (79.8 without FeatScale), 22.051M + 9,216 parameters.
    python tools/train.py configs/antioversmoothing/deit-s12-featscale_in1k.py
"""

_base_ = ['../_base_/models/classifier_deit-s12.py', '../_base_/settings/in1k-224_deit-300e.py']
model = dict(backbone=dict(feat_scale=True))
