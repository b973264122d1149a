"""Swin-B with softmax attention on ImageNet-1k, 300 epochs at 224 x 224.
ELFATT paper: top-1 84.2, 88M parameters, 21.57 GFLOPs.
    python tools/train.py configs/attention_zoo/swin-b-global_in1k.py
"""

_base_ = ['../_base_/models/classifier_swin-t.py', '../_base_/settings/in1k-224_cswin-base-300e.py']
model = dict(backbone=dict(arch='base', attention='global', drop_path_rate=0.5), head=dict(in_channels=1024))
