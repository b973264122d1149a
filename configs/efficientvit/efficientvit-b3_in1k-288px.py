"""EfficientViT-B3 on ImageNet-1k, 320 epochs at 288 x 288.
Authors' README: top-1 84.150, 49M parameters, 6.5 GFLOPs.
    python tools/train.py configs/efficientvit/efficientvit-b3_in1k-288px.py
"""

_base_ = ['../_base_/models/classifier_efficientvit-b1.py', '../_base_/settings/in1k-288_efficientvit-b3-320e.py']
model = dict(
    backbone=dict(arch='b3', drop_path_rate=0.1),
    neck=dict(in_channels=512, out_channels=2304, hidden_channels=2560),
    head=dict(in_channels=2560),
    train_cfg=dict(augments=[dict(type='Mixup', alpha=0.3), dict(type='CutMix', alpha=0.3)]),
)
