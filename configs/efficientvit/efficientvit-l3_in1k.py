"""EfficientViT-L3 on ImageNet-1k, 320 epochs at 224 x 224.
Authors' README: top-1 85.814, 246M parameters, 28 GFLOPs.
    python tools/train.py configs/efficientvit/efficientvit-l3_in1k.py
"""

_base_ = ['../_base_/models/classifier_efficientvit-l1.py', '../_base_/settings/in1k-224_efficientvit-l-320e.py']
model = dict(
    backbone=dict(arch='l3'),
    neck=dict(in_channels=1024, out_channels=6144, hidden_channels=6400),
    head=dict(in_channels=6400),
    train_cfg=dict(augments=[dict(type='Mixup', alpha=0.6), dict(type='CutMix', alpha=0.6)]),
)
custom_hooks = [dict(type='EMAHook', momentum=2e-4, update_buffers=True), dict(type='mmlinattn.MESAHook', factor=3.5)]
