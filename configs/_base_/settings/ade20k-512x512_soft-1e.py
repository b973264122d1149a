"""1 epoch: 1,263 batches of ADE20K's 20,210 images. The warm-up is as long a part of it as of 1x.

Source: the preprint of SOFT++ (Table 10) has the length, and says no more.
"""

_base_ = './ade20k-512x512_soft-1x.py'
train_cfg = dict(max_iters=1263, val_interval=1263)
param_scheduler = _base_.param_scheduler
param_scheduler[0].update(end=12)
param_scheduler[1].update(begin=12, end=1263)
default_hooks = dict(checkpoint=dict(interval=1263))
