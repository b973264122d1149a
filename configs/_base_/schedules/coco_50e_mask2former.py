"""COCO, 368,750 iterations (50 epochs), batch 16 (8 GPUs x 2), as Mask2Former trains."""

_base_ = './mask2former.py'

# validated every 5,000 iterations, and at the end
train_cfg = dict(type='IterBasedTrainLoop', max_iters=368750, val_interval=5000, dynamic_intervals=[(365001, 368750)])
param_scheduler = [
    dict(type='MultiStepLR', begin=0, end=368750, by_epoch=False, milestones=[327778, 355092], gamma=0.1)
]
