"""SOFT's training.

Source: its authors' code (end of the cosine 5e-5, gradients clipped at 1, moving average of weights 0.99996, which is
tested). Its learning rate is 1e-3 for Tiny and Small; the configs of the larger models have theirs.
"""

_base_ = './in1k-224_300e.py'

optim_wrapper = dict(clip_grad=dict(max_norm=1.0))
param_scheduler = _base_.param_scheduler
param_scheduler[1].update(eta_min=5e-5)
custom_hooks = [dict(type='EMAHook', momentum=4e-5, update_buffers=True)]
