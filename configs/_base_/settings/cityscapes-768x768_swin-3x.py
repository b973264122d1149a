"""120k iterations: three times as long as 1x."""

_base_ = './cityscapes-768x768_swin-1x.py'
train_cfg = dict(max_iters=120000)
param_scheduler = _base_.param_scheduler
param_scheduler[1].update(end=120000)
