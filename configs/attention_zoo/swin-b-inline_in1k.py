"""InLine-Swin-B on ImageNet-1k, 300 epochs at 224 x 224.
Authors' README: top-1 84.1, 88M parameters, 15.4 GFLOPs.
    python tools/train.py configs/attention_zoo/swin-b-inline_in1k.py
"""

_base_ = ['../_base_/models/classifier_swin-t.py', '../_base_/settings/in1k-224_swin-b512-300e.py']
model = dict(backbone=dict(arch='base', attention='inline', drop_path_rate=0.5), head=dict(in_channels=1024))
optim_wrapper = dict(type='AmpOptimWrapper')
