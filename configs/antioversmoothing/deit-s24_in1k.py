"""DeiT-S with 24 layers on ImageNet-1k, 300 epochs at 224 x 224. Paper: top-1 80.5, 43.3M parameters.
python tools/train.py configs/antioversmoothing/deit-s24_in1k.py
"""

_base_ = ['../_base_/models/classifier_deit-s12.py', '../_base_/settings/in1k-224_deit-300e.py']
model = dict(backbone=dict(num_layers=24, drop_rate=0.2))
