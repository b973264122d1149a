"""H-ViT^3-B on ImageNet-1k, 300 epochs at 224 x 224.
Authors' README: top-1 85.5, 94M parameters, 16.7 GFLOPs.
    python tools/train.py configs/vittt/hvittt-b_in1k.py
"""

_base_ = ['../_base_/models/classifier_hvittt-t.py', '../_base_/settings/in1k-224_mlla-300e.py']
model = dict(backbone=dict(arch='base', drop_path_rate=0.6), neck=dict(in_channels=640), head=dict(in_channels=640))
custom_hooks = [dict(type='EMAHook', momentum=1e-4, update_buffers=True), dict(type='mmlinattn.MESAHook', factor=2.0)]
