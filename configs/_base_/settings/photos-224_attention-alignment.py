"""Photos without labels at 224 x 224, 10 epochs, batch 32: the attentions of a student learn the outputs of its
teacher's. Still to be given: teacher and backbone of the model, and dataset.ann_file, a list of photos, or data_root.

Source: the stages are those of ViT-AdaLA (arXiv 2603.16063). Crops are those of ImageNet recipes; length, rate and the
lack of weight decay, which would pull the student away from its teacher's weights, are ours. A small Swin learned best
at a rate of 0.016, and one four times as wide, with Swin-T's channels, at 0.004, or 0.002 with nearly the same error.
"""

_base_ = 'mmpretrain::_base_/default_runtime.py'

model = dict(type='mmlinattn.AttentionAlignment')
data_preprocessor = dict(
    type='ClsDataPreprocessor', mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375], to_rgb=True
)
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='RandomResizedCrop', scale=224, crop_ratio_range=(0.35, 1.0), interpolation='bicubic'),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PackInputs'),
]
train_dataloader = dict(
    batch_size=32,
    num_workers=2,
    persistent_workers=True,
    drop_last=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(type='CustomDataset', data_root='', with_label=False, pipeline=train_pipeline),
)
train_cfg = dict(by_epoch=True, max_epochs=10, val_interval=10)
optim_wrapper = dict(
    type='OptimWrapper', optimizer=dict(type='AdamW', lr=2e-3, weight_decay=0.0), clip_grad=dict(max_norm=1.0)
)
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-3, by_epoch=False, end=20),
    dict(type='CosineAnnealingLR', eta_min_ratio=0.01, by_epoch=False),  # it ends with the last epoch
]
auto_scale_lr = dict(enable=False, base_batch_size=32)
default_hooks = dict(logger=dict(interval=10), checkpoint=dict(type='mmlinattn.AtomicCheckpointHook', max_keep_ckpts=1))
randomness = dict(seed=0)
