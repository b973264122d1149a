"""24 epochs: the 1x schedule, three times as long."""

_base_ = './cityscapes-detection_1x.py'
train_cfg = dict(max_epochs=24, val_interval=3)
param_scheduler = _base_.param_scheduler
param_scheduler[1].update(end=24, milestones=[21])
