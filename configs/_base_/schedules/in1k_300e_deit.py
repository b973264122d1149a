"""ImageNet, 300 epochs, batch 1024, as DeiT trains.

Source: DeiT's recipe and the code of AttnScale and FeatScale built on it (AdamW, lr 1e-3, weight decay 0.05, 5 epochs
of warm-up, cosine to 1e-5, no clipping).
"""

_base_ = './in1k_300e.py'

optim_wrapper = dict(clip_grad=None)
param_scheduler = _base_.param_scheduler
param_scheduler[0].update(end=5)
param_scheduler[1].update(eta_min=1e-5, begin=5)
