"""RAVLT's training.

Source: its authors' code: DeiT's recipe, a moving average of weights, 0.99996 ** (batch / 512), and synchronized
BatchNorms. Its command has 128 images per GPU, and no number of GPUs; 8 are assumed. The code's ten more epochs at the
smallest learning rate are left out, and so is its weight decay of LayerScale's factors.
"""

_base_ = './in1k-224_deit-300e.py'

sync_bn = 'torch'
custom_hooks = [dict(type='EMAHook', momentum=8e-5, update_buffers=True)]
