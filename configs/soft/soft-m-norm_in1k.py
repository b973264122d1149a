"""SOFT-Medium with the normalized kernel on ImageNet-1k, 300 epochs at 224 x 224.
arXiv preprint of SOFT++: top-1 83.1, 45M parameters.
Weights for the detection and segmentation configs, which have the normalized kernel too.
    python tools/train.py configs/soft/soft-m-norm_in1k.py
"""

_base_ = ['../_base_/models/classifier_soft-t.py', '../_base_/settings/in1k-224_soft-300e.py']
model = dict(backbone=dict(arch='medium', attn_norm=True))
# of its authors' configs, for 1,024 images
optim_wrapper = dict(optimizer=dict(lr=4e-4))
