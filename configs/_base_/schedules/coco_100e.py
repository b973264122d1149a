"""COCO, 25 epochs of 4 repetitions, batch 16 (8 GPUs x 2).

Source: length and steps are those of MMDetection's large-scale jittering; the optimizer is that of 1x.
"""

_base_ = './coco_1x.py'

train_cfg = dict(max_epochs=25, val_interval=5)
param_scheduler = _base_.param_scheduler
param_scheduler[1].update(end=25, milestones=[22, 24])
