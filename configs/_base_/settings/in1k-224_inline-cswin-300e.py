"""Training of InLine-CSWin-T and -S, batch 1024 (8 GPUs x 128).

Source: its authors' code: CSWin's recipe with lr 1e-3, a cosine to 2e-5, a moving average of weights,
0.9996 ** (batch / 4096), and tests on the center of images whose shorter side is 256. The code's ten more epochs at the
smallest learning rate are left out.
"""

_base_ = './in1k-224_cswin-300e.py'

test_pipeline = _base_.test_pipeline
test_pipeline[1].update(scale=256)
train_dataloader = dict(batch_size=128)
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
optim_wrapper = dict(optimizer=dict(lr=1e-3))
param_scheduler = _base_.param_scheduler
param_scheduler[1].update(eta_min=2e-5)
custom_hooks = [dict(type='EMAHook', momentum=1e-4, update_buffers=True)]
auto_scale_lr = dict(base_batch_size=1024)
