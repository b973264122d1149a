"""VSSD-S's and -B's training; the rest as in in1k-224_vssd-300e.py."""

_base_ = './in1k-224_vssd-300e.py'

optim_wrapper = dict(optimizer=dict(lr=6e-4))
param_scheduler = _base_.param_scheduler
param_scheduler[1].update(eta_min=6e-6)
