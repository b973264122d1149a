"""MLLA-S's training, batch 512 (8 GPUs x 64); the rest as in in1k-224_mlla-300e.py."""

_base_ = './in1k-224_swin-b512-300e.py'

optim_wrapper = dict(type='AmpOptimWrapper')
custom_hooks = [dict(type='EMAHook', momentum=5e-5, update_buffers=True), dict(type='mmlinattn.MESAHook', factor=1.5)]
