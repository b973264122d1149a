"""80k iterations as RAVLT's authors train Semantic FPN: AdamW with lr and weight decay 1e-4, no warm-up, and a learning
rate that falls to 1e-6 with the power 0.9.

In their code, norms decay, too.
"""

_base_ = './ade20k-512x512_swin-1x.py'
train_cfg = dict(max_iters=80000, val_interval=8000)
default_hooks = dict(checkpoint=dict(interval=8000))
optim_wrapper = dict(optimizer=dict(lr=1e-4, weight_decay=1e-4))
param_scheduler = [dict(type='PolyLR', power=0.9, eta_min=1e-6, by_epoch=False, begin=0, end=80000)]
