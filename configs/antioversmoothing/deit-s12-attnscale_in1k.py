"""DeiT-S12 + AttnScale on ImageNet-1k, 300 epochs at 224 x 224.
Paper: top-1 80.7 (79.8 without AttnScale), 22.051M + 72 parameters.
    python tools/train.py configs/antioversmoothing/deit-s12-attnscale_in1k.py
"""

_base_ = ['../_base_/models/classifier_deit-s12.py', '../_base_/settings/in1k-224_deit-300e.py']
model = dict(backbone=dict(attn_scale=True))
