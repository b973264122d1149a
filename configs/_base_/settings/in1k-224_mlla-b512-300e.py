"""As MLLA-S and -B train, batch 512 (8 GPUs x 64): otherwise as in1k-224_mlla-300e.py, whose docstring says what is
left out."""

_base_ = './in1k-224_swin-b512-300e.py'

optim_wrapper = dict(type='AmpOptimWrapper')
custom_hooks = [dict(type='EMAHook', momentum=5e-5)]
