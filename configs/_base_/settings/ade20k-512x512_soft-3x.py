"""480k iterations: three times as long as 1x."""

_base_ = './ade20k-512x512_soft-1x.py'
train_cfg = dict(max_iters=480000)
param_scheduler = _base_.param_scheduler
param_scheduler[1].update(end=480000)
