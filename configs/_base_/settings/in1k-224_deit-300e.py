"""DeiT's training.

Source: DeiT's recipe and the code of AttnScale and FeatScale built on it (AdamW, lr 1e-3, weight decay 0.05, 5 epochs
of warm-up, cosine to 1e-5, no clipping, repeated augmentation, moving average of weights 0.99996).
"""

_base_ = './in1k-224_300e.py'

train_dataloader = dict(sampler=dict(type='RepeatAugSampler'))
param_scheduler = _base_.param_scheduler
param_scheduler[0].update(end=5)
param_scheduler[1].update(begin=5)
custom_hooks = [dict(type='EMAHook', momentum=4e-5, update_buffers=True)]
