"""Pola-Swin-B on ImageNet-1k, 300 epochs at 224 x 224.
Authors' README: top-1 83.8.
    python tools/train.py configs/attention_zoo/swin-b-polaformer_in1k.py
"""

_base_ = ['../_base_/models/classifier_swin-t.py', '../_base_/settings/in1k-224_swin-b512-300e.py']
model = dict(backbone=dict(arch='base', attention='polaformer', drop_path_rate=0.5), head=dict(in_channels=1024))
