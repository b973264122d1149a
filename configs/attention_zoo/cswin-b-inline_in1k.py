"""InLine-CSWin-B on ImageNet-1k, 300 epochs at 224 x 224.
Figure in the authors' README: top-1 84.5, 73M parameters, 14.9 GFLOPs.
    python tools/train.py configs/attention_zoo/cswin-b-inline_in1k.py
"""

_base_ = ['../_base_/models/classifier_cswin-t.py', '../_base_/settings/in1k-224_inline-cswin-300e.py']
model = dict(backbone=dict(arch='b36292', attention='inline', drop_path_rate=0.5), head=dict(in_channels=768))
# with batch 512
train_dataloader = dict(batch_size=64)
optim_wrapper = dict(optimizer=dict(lr=5e-4, weight_decay=0.1))
param_scheduler = _base_.param_scheduler
param_scheduler[1].update(eta_min=1e-5)
custom_hooks = [dict(type='EMAHook', momentum=5e-5, update_buffers=True)]
auto_scale_lr = dict(base_batch_size=512)
