"""CSWin's training of its small models, batch 2048 (8 GPUs x 256); tested on the center of images whose shorter side is
248, a crop of 0.9.

Source: commands and defaults of CSWin's code, whose recipe the ELFATT paper takes (AdamW, lr 2e-3, weight decay 0.05,
20 epochs of warm-up, cosine to 1e-5, no clipping, mixed precision, moving average of weights 0.99984). The code's ten
more epochs at the smallest learning rate are left out.
"""

# the same warm-up and cosine
_base_ = './in1k-224_swin-300e.py'

test_pipeline = _base_.test_pipeline
test_pipeline[1].update(scale=248)
train_dataloader = dict(batch_size=256)
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
optim_wrapper = dict(type='AmpOptimWrapper', optimizer=dict(lr=2e-3), clip_grad=None)
custom_hooks = [dict(type='EMAHook', momentum=1.6e-4, update_buffers=True)]
auto_scale_lr = dict(base_batch_size=2048)
