"""EfficientViT-L2 on ImageNet-1k, 320 epochs at 224 x 224.
Authors' README: top-1 85.050, 64M parameters, 6.9 GFLOPs.
    python tools/train.py configs/efficientvit/efficientvit-l2_in1k.py
"""

_base_ = ['../_base_/models/classifier_efficientvit-l1.py', '../_base_/settings/in1k-224_efficientvit-l-320e.py']
model = dict(
    backbone=dict(arch='l2'), train_cfg=dict(augments=[dict(type='Mixup', alpha=0.4), dict(type='CutMix', alpha=0.4)])
)
custom_hooks = [dict(type='EMAHook', momentum=2e-4, update_buffers=True), dict(type='mmlinattn.MESAHook', factor=2.75)]
