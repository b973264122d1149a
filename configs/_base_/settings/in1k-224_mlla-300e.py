"""MLLA-T's training.

Source: its authors' code: Swin's recipe, mixed precision, a moving average of weights, 0.9996 ** (batch / 4096), and
after a quarter of the epochs self-distillation from it (MESA) times 1 (T), 1.5 (S) or 2 (B).
"""

_base_ = './in1k-224_swin-300e.py'

optim_wrapper = dict(type='AmpOptimWrapper')
custom_hooks = [dict(type='EMAHook', momentum=1e-4, update_buffers=True), dict(type='mmlinattn.MESAHook', factor=1.0)]
