"""ImageNet-1k at 224 x 224, 300 epochs, batch 1024 (8 GPUs x 128): the common part of the recipes of SOFT, DeiT and
Swin. The backbone starts from scratch, as in these recipes, unless `pretrained` names weights.

Source: the SOFT papers (AdamW, weight decay 0.05, 10 epochs of warm-up, cosine). The learning rate is the 1e-3 of DeiT,
of Swin, and of SOFT-Tiny and -Small in their authors' code; the papers print none. RandAugment and random erasing are
DeiT's and Swin's.
"""

_base_ = [
    'mmpretrain::_base_/datasets/imagenet_bs64_swin_224.py',
    '../schedules/no_decay.py',
    'mmpretrain::_base_/default_runtime.py',
]

train_dataloader = dict(
    batch_size=128, pin_memory=True, persistent_workers=True, collate_fn=dict(type='default_collate')
)
val_dataloader = train_dataloader
test_dataloader = train_dataloader
train_cfg = dict(by_epoch=True, max_epochs=300, val_interval=1)
val_cfg = dict()
test_cfg = dict()
optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=1e-3, betas=(0.9, 0.999), weight_decay=0.05),
    paramwise_cfg=dict(bias_decay_mult=0.0, flat_decay_mult=0.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-3, by_epoch=True, begin=0, end=10, convert_to_iter_based=True),
    dict(type='CosineAnnealingLR', eta_min=1e-5, by_epoch=True, begin=10, end=300, convert_to_iter_based=True),
]
auto_scale_lr = dict(enable=False, base_batch_size=1024)
default_hooks = dict(
    checkpoint=dict(type='mmlinattn.AtomicCheckpointHook', max_keep_ckpts=3),
    pretrained=dict(type='mmlinattn.PretrainedBackboneHook', warn=False),
)
