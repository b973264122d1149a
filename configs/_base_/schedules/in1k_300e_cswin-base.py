"""ImageNet, 300 epochs, batch 1024, as CSWin trains its base model.

Source: the command of CSWin's code (lr 1e-3, weight decay 0.1, moving average of weights 0.99992).
"""

_base_ = './in1k_300e_cswin.py'

optim_wrapper = dict(optimizer=dict(lr=1e-3, weight_decay=0.1))
custom_hooks = [dict(type='EMAHook', momentum=8e-5)]
auto_scale_lr = dict(base_batch_size=1024)
