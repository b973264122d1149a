"""CaiT-XXS24 on ImageNet-1k, 60 epochs from a pretrained CaiT-XXS24: the baseline of fine-tuning with a technique.
Paper: top-1 77.5, 12.0M parameters.
It starts from the official CaiT, its class layers and its head included.
python tools/train.py configs/antioversmoothing/cait-xxs24_finetune_in1k.py
"""

_base_ = ['../_base_/models/classifier_cait-xxs24.py', '../_base_/settings/in1k-224_deit-finetune-60e.py']
pretrained = 'https://dl.fbaipublicfiles.com/deit/XXS24_224.pth'
