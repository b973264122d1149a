"""ImageNet, 30 epochs from a pretrained classifier, batch 256 (8 GPUs x 32), as CSWin is fine-tuned for larger images.

Source: the command of CSWin's code (AdamW, lr 5e-6, weight decay 1e-8, no warm-up, 20 epochs of cosine to 5e-7 and 10
at that, mixed precision, moving average of weights 0.9998).
"""

_base_ = './in1k_300e_cswin.py'

train_cfg = dict(max_epochs=30)
optim_wrapper = dict(optimizer=dict(lr=5e-6, weight_decay=1e-8))
param_scheduler = _base_.param_scheduler[1:]
param_scheduler[0].update(eta_min=5e-7, begin=0, end=20)
custom_hooks = [dict(type='EMAHook', momentum=2e-4)]
auto_scale_lr = dict(base_batch_size=256)
