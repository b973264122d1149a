"""Imagenette at 112 x 112, 12 epochs, batch 32: a training of 41 minutes on one core of a CPU.

Source: ours; it is the papers' ImageNet recipe (AdamW, weight decay 0.05, a warm-up, cosine, label smoothing) without
what needs hundreds of epochs, mixup, cutmix and erasing. Imagenette has photographs of ten classes of ImageNet in
folders, train and val.
"""

_base_ = './in1k-224_300e.py'

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
    _delete_=True,
    batch_size=32,
    num_workers=1,
    persistent_workers=True,
    drop_last=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(data, data_prefix='train', pipeline=train_pipeline),
)
val_dataloader = dict(
    _delete_=True,
    batch_size=32,
    num_workers=1,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(data, data_prefix='val', pipeline=test_pipeline),
)
test_dataloader = val_dataloader
val_evaluator = dict(type='Accuracy', topk=1)
test_evaluator = val_evaluator
train_cfg = dict(max_epochs=12, val_interval=4)
optim_wrapper = dict(clip_grad=dict(max_norm=1.0))
param_scheduler = _base_.param_scheduler
param_scheduler[0].update(end=1)
param_scheduler[1].update(begin=1, end=12)
auto_scale_lr = dict(base_batch_size=32)
default_hooks = dict(checkpoint=dict(max_keep_ckpts=1))
randomness = dict(seed=0)
