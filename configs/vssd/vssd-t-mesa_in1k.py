"""VSSD-T on ImageNet-1k with self-distillation (MESA), 300 epochs at 224 x 224.
Authors' README: top-1 84.1, 24M parameters, 4.5 GFLOPs.
    python tools/train.py configs/vssd/vssd-t-mesa_in1k.py
"""

_base_ = ['../_base_/models/classifier_vssd-t.py', '../_base_/settings/in1k-224_vssd-300e.py']
custom_hooks = [dict(type='EMAHook', momentum=1e-4, update_buffers=True), dict(type='mmlinattn.MESAHook', factor=1.0)]
