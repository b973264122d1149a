"""As MLLA-T trains, but for self-distillation.

Source: its authors' code: Swin's recipe, mixed precision, and a moving average of weights, 0.9996 ** (batch / 4096).
After a quarter of the epochs, that code adds the cross-entropy to the predictions of the moving average, times 1 (T),
1.5 (S) or 2 (B), which it calls MESA. That is left out.
"""

_base_ = './in1k-224_swin-300e.py'

optim_wrapper = dict(type='AmpOptimWrapper')
custom_hooks = [dict(type='EMAHook', momentum=1e-4)]
