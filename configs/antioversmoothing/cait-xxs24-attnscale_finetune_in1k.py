"""CaiT-XXS24 + AttnScale on ImageNet-1k, 60 epochs from a pretrained CaiT-XXS24.
Paper: top-1 77.8 (77.5 without AttnScale), 11.956M + 96 parameters.
It starts from the official CaiT, its class layers and its head included.
python tools/train.py configs/antioversmoothing/cait-xxs24-attnscale_finetune_in1k.py
"""

_base_ = ['../_base_/models/classifier_cait-xxs24.py', '../_base_/settings/in1k-224_deit-finetune-60e.py']
pretrained = 'https://dl.fbaipublicfiles.com/deit/XXS24_224.pth'
model = dict(backbone=dict(attn_scale=True))
