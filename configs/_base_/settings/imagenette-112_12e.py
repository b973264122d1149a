"""Imagenette at 112 x 112, 12 epochs, batch 32: a training of half an hour on one core of a CPU.

Source: ours; it is the papers' ImageNet recipe (AdamW, weight decay 0.05, a warm-up, cosine, label smoothing) without
what needs hundreds of epochs, mixup, cutmix and erasing. Imagenette has photographs of ten classes of ImageNet in
folders, train and val.
"""

_base_ = ['../schedules/no_decay.py', 'mmpretrain::_base_/default_runtime.py']

mean = [123.675, 116.28, 103.53]
std = [58.395, 57.12, 57.375]
data_preprocessor = dict(num_classes=10, mean=mean, std=std, to_rgb=True)
classes = ('tench', 'English springer', 'cassette player', 'chain saw', 'church')
classes += ('French horn', 'garbage truck', 'gas pump', 'golf ball', 'parachute')
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='RandomResizedCrop', scale=112, crop_ratio_range=(0.35, 1.0)),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PackInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='ResizeEdge', scale=128, edge='short', interpolation='area'),
    dict(type='CenterCrop', crop_size=112),
    dict(type='PackInputs'),
]
data = dict(type='CustomDataset', data_root='data/imagenette', metainfo=dict(classes=classes))
train_dataloader = dict(
    batch_size=32,
    num_workers=1,
    persistent_workers=True,
    drop_last=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(data, data_prefix='train', pipeline=train_pipeline),
)
val_dataloader = dict(
    batch_size=32,
    num_workers=1,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(data, data_prefix='val', pipeline=test_pipeline),
)
test_dataloader = val_dataloader
val_evaluator = dict(type='Accuracy', topk=1)
test_evaluator = val_evaluator
train_cfg = dict(by_epoch=True, max_epochs=12, val_interval=4)
val_cfg = dict()
test_cfg = dict()
optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=1e-3, betas=(0.9, 0.999), weight_decay=0.05),
    paramwise_cfg=dict(bias_decay_mult=0.0, flat_decay_mult=0.0),
    clip_grad=dict(max_norm=1.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-3, by_epoch=True, begin=0, end=1, convert_to_iter_based=True),
    dict(type='CosineAnnealingLR', eta_min=1e-5, by_epoch=True, begin=1, end=12, convert_to_iter_based=True),
]
auto_scale_lr = dict(enable=False, base_batch_size=32)
default_hooks = dict(
    checkpoint=dict(type='mmlinattn.AtomicCheckpointHook', max_keep_ckpts=1),
    pretrained=dict(type='mmlinattn.PretrainedBackboneHook', warn=False),
    release_memory=dict(type='mmlinattn.ReleaseMemoryHook'),
)
randomness = dict(seed=0)
