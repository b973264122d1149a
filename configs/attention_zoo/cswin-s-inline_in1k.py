"""InLine-CSWin-S on ImageNet-1k, 300 epochs at 224 x 224.
Figure in the authors' README: top-1 83.8, 33M parameters, 6.8 GFLOPs.
    python tools/train.py configs/attention_zoo/cswin-s-inline_in1k.py
"""

_base_ = ['../_base_/models/classifier_cswin-t.py', '../_base_/settings/in1k-224_inline-cswin-300e.py']
model = dict(backbone=dict(arch='s36292', attention='inline', drop_path_rate=0.4))
