"""COCO, 12 epochs, batch 16 (8 GPUs x 2).

Source: the SOFT++ paper (AdamW, lr 1e-4, weight decay 0.01, batch 16); warm-up and steps are MMDetection's 1x.
"""

_base_ = './no_decay.py'

train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=12, val_interval=1)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
optim_wrapper = dict(type='OptimWrapper', optimizer=dict(type='AdamW', lr=1e-4, betas=(0.9, 0.999), weight_decay=0.01))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.001, by_epoch=False, begin=0, end=500),
    dict(type='MultiStepLR', begin=0, end=12, by_epoch=True, milestones=[8, 11], gamma=0.1),
]
auto_scale_lr = dict(enable=False, base_batch_size=16)
