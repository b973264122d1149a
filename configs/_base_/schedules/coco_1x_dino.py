"""COCO, 12 epochs, batch 16 (8 GPUs x 2), as DINO trains.

Source: MMDetection's DINO (AdamW, lr 1e-4, a tenth of it in the backbone, weight decay 1e-4 on all parameters,
gradients clipped at 0.1, one step after 11 epochs, no warm-up).
"""

train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=12, val_interval=1)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=1e-4, betas=(0.9, 0.999), weight_decay=1e-4),
    paramwise_cfg=dict(custom_keys=dict(backbone=dict(lr_mult=0.1))),
    clip_grad=dict(max_norm=0.1, norm_type=2),
)
param_scheduler = [dict(type='MultiStepLR', begin=0, end=12, by_epoch=True, milestones=[11], gamma=0.1)]
auto_scale_lr = dict(enable=False, base_batch_size=16)
