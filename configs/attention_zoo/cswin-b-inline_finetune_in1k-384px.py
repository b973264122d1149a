"""InLine-CSWin-B on ImageNet-1k, 30 epochs at 384 x 384 from 224 x 224.
Figure in the authors' README: top-1 85.7, 73M parameters, 46.3 GFLOPs.
It starts from the official weights for 224 x 224, its head included.
    python tools/train.py configs/attention_zoo/cswin-b-inline_finetune_in1k-384px.py
"""

_base_ = ['../_base_/models/classifier_cswin-t.py', '../_base_/settings/in1k-384_cswin-finetune-30e.py']
pretrained = 'https://cloud.tsinghua.edu.cn/f/91e17121df284ae38521/?dl=1#/inline_cswin_b.pth'
model = dict(
    backbone=dict(arch='b36292', attention='inline', img_size=384, drop_path_rate=0.7), head=dict(in_channels=768)
)
# rates times batch / 512, and tests on a crop of 224 / 256, as in the authors' code
test_pipeline = _base_.test_pipeline
test_pipeline[1].update(scale=438)
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
optim_wrapper = dict(optimizer=dict(lr=2.5e-6))
param_scheduler = _base_.param_scheduler
param_scheduler[0].update(eta_min=2.5e-7)
custom_hooks = [dict(type='EMAHook', momentum=2.5e-5, update_buffers=True)]
