"""H-ViT^3-S on ImageNet-1k, 300 epochs at 224 x 224.
Authors' README: top-1 84.9, 54M parameters, 8.8 GFLOPs.
    python tools/train.py configs/vittt/hvittt-s_in1k.py
"""

_base_ = ['../_base_/models/classifier_hvittt-t.py', '../_base_/settings/in1k-224_mlla-300e.py']
model = dict(backbone=dict(arch='small', drop_path_rate=0.4))
custom_hooks = [dict(type='EMAHook', momentum=1e-4, update_buffers=True), dict(type='mmlinattn.MESAHook', factor=1.5)]
