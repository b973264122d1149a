"""EfficientViT-L1 on ImageNet-1k, 320 epochs at 224 x 224.
Authors' README: top-1 84.484, 53M parameters, 5.3 GFLOPs.
    python tools/train.py configs/efficientvit/efficientvit-l1_in1k.py
"""

_base_ = ['../_base_/models/classifier_efficientvit-l1.py', '../_base_/settings/in1k-224_efficientvit-l-320e.py']
custom_hooks = [dict(type='EMAHook', momentum=2e-4, update_buffers=True), dict(type='mmlinattn.MESAHook', factor=2.0)]
