"""CaiT-S24 on ImageNet-1k, 400 epochs at 224 x 224. Paper: top-1 82.6, 46.9M parameters.
python tools/train.py configs/antioversmoothing/cait-s24_in1k.py
"""

_base_ = ['../_base_/models/classifier_cait-s24.py', '../_base_/settings/in1k-224_cait-400e.py']
