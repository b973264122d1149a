"""Agent-CSWin-T on ImageNet-1k, 300 epochs at 224 x 224.

Agent attention's paper: 21M parameters, 4.3 GFLOPs.

    python tools/train.py configs/attention_zoo/cswin-t-agent_in1k.py
"""

_base_ = './cswin-t-global_in1k.py'

model = dict(backbone=dict(attention='agent'))
