"""1 epoch, the first one of 1x.

Source: the preprint of SOFT++ (Table 10) has the length, and says no more.
"""

_base_ = './coco-instance_1x.py'
train_cfg = dict(max_epochs=1)
param_scheduler = _base_.param_scheduler
param_scheduler[1].update(end=1, milestones=[])
