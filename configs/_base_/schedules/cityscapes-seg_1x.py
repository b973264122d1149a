"""UperNet on Cityscapes, 40k iterations, batch 8 (4 GPUs x 2).

Source: the SOFT++ paper (40k at 768 x 768); the batch is MMSegmentation's.
"""

_base_ = './ade20k_1x.py'

train_cfg = dict(max_iters=40000, val_interval=4000)
param_scheduler = _base_.param_scheduler
param_scheduler[1].update(end=40000)
auto_scale_lr = dict(base_batch_size=8)
