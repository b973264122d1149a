"""EfficientViT's training of series B, B3 aside.

Source: its authors' code (AdamW, lr 2e-3, weight decay 0.1, 20 epochs of warm-up and 300 of cosine to 0, gradients
clipped at 2, weak RandAugment and no random erasing, moving average of weights 0.9998, binary cross-entropy). Each step
of theirs draws the side of its images from 128, 160, 192 and 224; ours has the largest.
"""

_base_ = './in1k-224_300e.py'

train_pipeline = _base_.train_pipeline
train_pipeline[3].update(num_policies=1, magnitude_level=3)
del train_pipeline[4]
test_pipeline = _base_.test_pipeline
test_pipeline[1].update(scale=224)
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
train_cfg = dict(max_epochs=320)
optim_wrapper = dict(optimizer=dict(lr=2e-3, weight_decay=0.1), clip_grad=dict(max_norm=2.0))
param_scheduler = _base_.param_scheduler
param_scheduler[0].update(end=20)
param_scheduler[1].update(begin=20, end=320, eta_min=0.0)
custom_hooks = [dict(type='EMAHook', momentum=2e-4, update_buffers=True)]
