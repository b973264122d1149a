"""CaiT-S24 + FeatScale on ImageNet-1k, 400 epochs at 224 x 224.
Paper: top-1 83.2 (82.6 without FeatScale), 46.916M + 18,432 parameters.
    python tools/train.py configs/antioversmoothing/cait-s24-featscale_in1k.py
"""

_base_ = ['../_base_/models/classifier_cait-s24.py', '../_base_/settings/in1k-224_cait-400e.py']
model = dict(backbone=dict(feat_scale=True))
