"""ImageNet, 300 epochs, batch 2048, as CSWin trains its small models.

Source: commands and defaults of CSWin's code, whose recipe the ELFATT paper takes (AdamW, lr 2e-3, weight decay 0.05,
20 epochs of warm-up, cosine to 1e-5, no clipping, mixed precision, moving average of weights 0.99984). The code's ten
more epochs at the smallest learning rate are left out.
"""

# the same warm-up and cosine
_base_ = './in1k_300e_swin.py'

optim_wrapper = dict(type='AmpOptimWrapper', optimizer=dict(lr=2e-3), clip_grad=None)
custom_hooks = [dict(type='EMAHook', momentum=1.6e-4)]
auto_scale_lr = dict(base_batch_size=2048)
