"""Agent-CSWin-T on ImageNet-1k, 300 epochs at 224 x 224. Agent attention's paper: 21M parameters, 4.3 GFLOPs.
ELFATT paper: top-1 83.1, 20M parameters, 4.31 GFLOPs.
    python tools/train.py configs/attention_zoo/cswin-t-agent_in1k.py
"""

_base_ = ['../_base_/models/classifier_cswin-t.py', '../_base_/settings/in1k-224_cswin-300e.py']
model = dict(backbone=dict(attention='agent'))
