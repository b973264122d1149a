"""Linear SOFT++-Micro on ImageNet-1k, 300 epochs at 224 x 224. Not trained yet.
python tools/train.py configs/soft/softpp-micro-linear_in1k.py
"""

_base_ = ['../_base_/models/classifier_softpp-micro-linear.py', '../_base_/settings/in1k-224_soft-300e.py']
