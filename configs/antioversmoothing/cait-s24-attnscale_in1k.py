"""CaiT-S24 + AttnScale on ImageNet-1k, 400 epochs at 224 x 224.
Paper: top-1 83.2 (82.6 without AttnScale), 46.916M + 192 parameters.
    python tools/train.py configs/antioversmoothing/cait-s24-attnscale_in1k.py
"""

_base_ = ['../_base_/models/classifier_cait-s24.py', '../_base_/settings/in1k-224_cait-400e.py']
model = dict(backbone=dict(attn_scale=True))
