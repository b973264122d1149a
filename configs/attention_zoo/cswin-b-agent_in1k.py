"""Agent-CSWin-B on ImageNet-1k, 300 epochs at 224 x 224. ELFATT paper: top-1 84.7, 73M parameters, 14.92 GFLOPs.
python tools/train.py configs/attention_zoo/cswin-b-agent_in1k.py
"""

_base_ = ['../_base_/models/classifier_cswin-t.py', '../_base_/settings/in1k-224_cswin-base-300e.py']
model = dict(backbone=dict(arch='b36292', attention='agent', drop_path_rate=0.5), head=dict(in_channels=768))
