"""DeiT-S with 12 layers on ImageNet-1k, 300 epochs at 224 x 224. Paper: top-1 79.8, 22.0M parameters.
python tools/train.py configs/antioversmoothing/deit-s12_in1k.py
"""

_base_ = ['../_base_/models/classifier_deit-s12.py', '../_base_/settings/in1k-224_deit-300e.py']
