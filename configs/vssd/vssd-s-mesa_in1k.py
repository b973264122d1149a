"""VSSD-S on ImageNet-1k with self-distillation (MESA), 300 epochs at 224 x 224.
Authors' README: top-1 84.5, 40M parameters, 7.4 GFLOPs.
    python tools/train.py configs/vssd/vssd-s-mesa_in1k.py
"""

_base_ = ['../_base_/models/classifier_vssd-t.py', '../_base_/settings/in1k-224_vssd-lr6e-4-300e.py']
model = dict(backbone=dict(arch='small', drop_path_rate=0.4))
custom_hooks = [dict(type='EMAHook', momentum=1e-4, update_buffers=True), dict(type='mmlinattn.MESAHook', factor=1.5)]
