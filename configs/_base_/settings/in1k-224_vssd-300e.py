"""VSSD's training.

Source: its authors' code: Swin's recipe, mixed precision, and a moving average of weights, 0.9999. VSSD-S and -B have
the learning rate 6e-4.
"""

_base_ = './in1k-224_swin-300e.py'

optim_wrapper = dict(type='AmpOptimWrapper')
custom_hooks = [dict(type='EMAHook', momentum=1e-4, update_buffers=True)]
