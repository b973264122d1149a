"""Detection on Cityscapes, 24 epochs: the 1x schedule, three times as long."""

_base_ = './cityscapes-det_1x.py'

train_cfg = dict(max_epochs=24, val_interval=3)

param_scheduler = [
    dict(type='LinearLR', start_factor=0.001, by_epoch=False, begin=0, end=500),
    dict(
        type='MultiStepLR', begin=0, end=24, by_epoch=True, milestones=[21], gamma=0.1
    ),
]
