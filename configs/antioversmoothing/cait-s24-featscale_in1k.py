"""CaiT-S24 + FeatScale on ImageNet-1k, 300 epochs at 224 x 224.

Paper: 46.916M + 18,432 parameters; top-1 83.2 (82.6 without FeatScale)
by fine-tuning, see cait-s24-featscale_finetune_in1k.py.

    python tools/train.py configs/antioversmoothing/cait-s24-featscale_in1k.py
"""

_base_ = './cait-s24-attnscale_in1k.py'

model = dict(backbone=dict(attn_scale=False, feat_scale=True))
