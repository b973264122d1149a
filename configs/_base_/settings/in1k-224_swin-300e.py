"""Swin's training.

Source: Swin's recipe (AdamW, lr 1e-3, weight decay 0.05, 20 epochs of warm-up, cosine to 1e-5, gradients clipped at 5).
"""

_base_ = './in1k-224_300e.py'

optim_wrapper = dict(clip_grad=dict(max_norm=5.0))
param_scheduler = _base_.param_scheduler
param_scheduler[0].update(end=20)
param_scheduler[1].update(begin=20)
