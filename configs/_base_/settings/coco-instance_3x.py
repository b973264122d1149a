"""36 epochs: the 1x schedule, three times as long, the shorter side of training images drawn from 480-800."""

_base_ = './coco-instance_1x.py'
train_pipeline = _base_.train_pipeline
train_pipeline[2] = dict(
    type='RandomChoiceResize', scales=[(1333, side) for side in range(480, 801, 32)], keep_ratio=True
)
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
train_cfg = dict(max_epochs=36, val_interval=3)
param_scheduler = _base_.param_scheduler
param_scheduler[1].update(end=36, milestones=[27, 33])
