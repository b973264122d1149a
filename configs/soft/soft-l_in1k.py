"""SOFT-Large on ImageNet-1k, 300 epochs at 224 x 224. Paper: top-1 83.1, 64M parameters.
This is the model of the NeurIPS paper, without normalization. Weights for the detection and segmentation configs need
the normalized kernel: train soft-l-norm_in1k.py.
    python tools/train.py configs/soft/soft-l_in1k.py
"""

_base_ = ['../_base_/models/classifier_soft-t.py', '../_base_/settings/in1k-224_soft-300e.py']
model = dict(backbone=dict(arch='large'))
# of its authors' configs, for 1,024 images
optim_wrapper = dict(optimizer=dict(lr=3.3e-4))
