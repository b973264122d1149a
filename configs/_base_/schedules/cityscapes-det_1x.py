"""Detection on Cityscapes, 8 epochs of 8 repetitions, batch 8 (8 GPUs x 1).

Source: length, steps and batch are MMDetection's; the learning rate is COCO's
for half the batch.
"""

_base_ = './coco_1x.py'

train_cfg = dict(max_epochs=8)

optim_wrapper = dict(optimizer=dict(lr=5e-5))

param_scheduler = [
    dict(type='LinearLR', start_factor=0.001, by_epoch=False, begin=0, end=500),
    dict(type='MultiStepLR', begin=0, end=8, by_epoch=True, milestones=[7], gamma=0.1),
]

auto_scale_lr = dict(base_batch_size=8)
