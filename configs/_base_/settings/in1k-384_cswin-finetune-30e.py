"""30 epochs from a pretrained classifier at 384 x 384, batch 256 (8 GPUs x 32), as CSWin is fine-tuned for larger
images; the whole shorter side is tested.

Source: the command of CSWin's code (AdamW, lr 5e-6, weight decay 1e-8, no warm-up, 20 epochs of cosine to 5e-7 and 10
at that, mixed precision, moving average of weights 0.9998).
"""

_base_ = './in1k-224_cswin-300e.py'

train_pipeline = _base_.train_pipeline
train_pipeline[1].update(scale=384)
test_pipeline = _base_.test_pipeline
test_pipeline[1].update(scale=384)
test_pipeline[2].update(crop_size=384)
train_dataloader = dict(batch_size=32, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(batch_size=32, dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
train_cfg = dict(max_epochs=30)
optim_wrapper = dict(optimizer=dict(lr=5e-6, weight_decay=1e-8))
param_scheduler = _base_.param_scheduler[1:]
param_scheduler[0].update(eta_min=5e-7, begin=0, end=20)
custom_hooks = [dict(type='EMAHook', momentum=2e-4, update_buffers=True)]
auto_scale_lr = dict(base_batch_size=256)
# fine-tuning goes on with the classifier's head, and the log says so if there is nothing to start from
default_hooks = dict(pretrained=dict(warn=True, head=True))
