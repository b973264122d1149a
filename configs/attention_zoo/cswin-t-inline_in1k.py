"""InLine-CSWin-T on ImageNet-1k, 300 epochs at 224 x 224.
Figure in the authors' README: top-1 83.2, 21M parameters, 4.3 GFLOPs.
    python tools/train.py configs/attention_zoo/cswin-t-inline_in1k.py
"""

_base_ = ['../_base_/models/classifier_cswin-t.py', '../_base_/settings/in1k-224_inline-cswin-300e.py']
model = dict(backbone=dict(attention='inline'))
