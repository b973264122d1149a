"""CaiT-XXS24 + FeatScale on ImageNet-1k, 400 epochs at 224 x 224.
Paper: 11.956M + 9,216 parameters; top-1 77.8 (77.5 without FeatScale) by fine-tuning, see cait-
xxs24-featscale_finetune_in1k.py.
    python tools/train.py configs/antioversmoothing/cait-xxs24-featscale_in1k.py
"""

_base_ = ['../_base_/models/classifier_cait-xxs24.py', '../_base_/settings/in1k-224_cait-400e.py']
model = dict(backbone=dict(feat_scale=True))
