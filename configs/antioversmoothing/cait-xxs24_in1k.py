"""CaiT-XXS24 on ImageNet-1k, 400 epochs at 224 x 224.
python tools/train.py configs/antioversmoothing/cait-xxs24_in1k.py
"""

_base_ = ['../_base_/models/classifier_cait-xxs24.py', '../_base_/settings/in1k-224_cait-400e.py']
