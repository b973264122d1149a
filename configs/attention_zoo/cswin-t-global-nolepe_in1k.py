"""CSWin-T with softmax attention and without LePE on ImageNet-1k, 300 epochs at 224 x 224.
ELFATT paper, Table III: top-1 82.9, 20M parameters, 7.58 GFLOPs.
    python tools/train.py configs/attention_zoo/cswin-t-global-nolepe_in1k.py
"""

_base_ = ['../_base_/models/classifier_cswin-t.py', '../_base_/settings/in1k-224_cswin-300e.py']
model = dict(backbone=dict(attention=dict(type='mmlinattn.SoftmaxAttention')))
