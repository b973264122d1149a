"""CaiT-S24 + AttnScale on ImageNet-1k, 60 epochs from a pretrained CaiT-S24.
Paper: top-1 82.8 (82.6 without AttnScale), 46.916M + 192 parameters.
It starts from the official CaiT, its class layers and its head included.
python tools/train.py configs/antioversmoothing/cait-s24-attnscale_finetune_in1k.py
"""

_base_ = ['../_base_/models/classifier_cait-s24.py', '../_base_/settings/in1k-224_deit-finetune-60e.py']
pretrained = 'https://dl.fbaipublicfiles.com/deit/S24_224.pth'
model = dict(backbone=dict(attn_scale=True))
