"""DeiT-S24 + AttnScale on ImageNet-1k, 300 epochs at 224 x 224.
Paper: top-1 81.1 (80.5 without AttnScale), 43.344M + 144 parameters.
    python tools/train.py configs/antioversmoothing/deit-s24-attnscale_in1k.py
"""

_base_ = ['../_base_/models/classifier_deit-s12.py', '../_base_/settings/in1k-224_deit-300e.py']
model = dict(backbone=dict(attn_scale=True, num_layers=24, drop_rate=0.2))
