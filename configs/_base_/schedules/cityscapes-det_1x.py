"""Detection on Cityscapes, 8 epochs of 8 repetitions, batch 8 (8 GPUs x 1).

Source: length, steps and batch are MMDetection's; the learning rate is COCO's for half the batch.
"""

_base_ = './coco_1x.py'

train_cfg = dict(max_epochs=8)
optim_wrapper = dict(optimizer=dict(lr=5e-5))
param_scheduler = _base_.param_scheduler
param_scheduler[1].update(end=8, milestones=[7])
auto_scale_lr = dict(base_batch_size=8)
