"""Agent-CSWin-B on ImageNet-1k, 30 epochs at 384 x 384 from 224 x 224.
ELFATT paper: top-1 85.8, 73M parameters, 46.33 GFLOPs.
It starts from the official weights for 224 x 224, its head included.
    python tools/train.py configs/attention_zoo/cswin-b-agent_finetune_in1k-384px.py
"""

_base_ = ['../_base_/models/classifier_cswin-t.py', '../_base_/settings/in1k-384_cswin-finetune-30e.py']
pretrained = 'https://cloud.tsinghua.edu.cn/f/c8035b0839b2410c8c9f/?dl=1#/agent_cswin_b.pth'
model = dict(
    backbone=dict(arch='b36292', attention='agent', img_size=384, drop_path_rate=0.7),
    head=dict(in_channels=768),
    train_cfg=dict(augments=[dict(type='Mixup', alpha=0.1), dict(type='CutMix', alpha=0.1)]),
)
