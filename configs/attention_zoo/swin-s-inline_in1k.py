"""InLine-Swin-S on ImageNet-1k, 300 epochs at 224 x 224.
Authors' README: top-1 83.6, 50M parameters, 8.7 GFLOPs.
    python tools/train.py configs/attention_zoo/swin-s-inline_in1k.py
"""

_base_ = ['../_base_/models/classifier_swin-t.py', '../_base_/settings/in1k-224_swin-300e.py']
model = dict(backbone=dict(arch='small', attention='inline', drop_path_rate=0.3))
optim_wrapper = dict(type='AmpOptimWrapper')
