"""CSWin's training of its base model, batch 1024 (8 GPUs x 128).

Source: the command of CSWin's code (lr 1e-3, weight decay 0.1, moving average of weights 0.99992).
"""

_base_ = './in1k-224_cswin-300e.py'

train_dataloader = dict(batch_size=128)
optim_wrapper = dict(optimizer=dict(lr=1e-3, weight_decay=0.1))
custom_hooks = [dict(type='EMAHook', momentum=8e-5, update_buffers=True)]
auto_scale_lr = dict(base_batch_size=1024)
