"""CaiT-S24 on ImageNet-1k, 60 epochs from a pretrained CaiT-S24: the baseline of fine-tuning with a technique.
Paper: top-1 82.6, 46.9M parameters.
It starts from the official CaiT, its class layers and its head included.
python tools/train.py configs/antioversmoothing/cait-s24_finetune_in1k.py
"""

_base_ = ['../_base_/models/classifier_cait-s24.py', '../_base_/settings/in1k-224_deit-finetune-60e.py']
pretrained = 'https://dl.fbaipublicfiles.com/deit/S24_224.pth'
