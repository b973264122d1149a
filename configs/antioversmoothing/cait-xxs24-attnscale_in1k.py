"""CaiT-XXS24 + AttnScale on ImageNet-1k, 400 epochs at 224 x 224.
Paper: 11.956M + 96 parameters; top-1 77.8 (77.5 without AttnScale) by fine-tuning, see cait-
xxs24-attnscale_finetune_in1k.py.
    python tools/train.py configs/antioversmoothing/cait-xxs24-attnscale_in1k.py
"""

_base_ = ['../_base_/models/classifier_cait-xxs24.py', '../_base_/settings/in1k-224_cait-400e.py']
model = dict(backbone=dict(attn_scale=True))
