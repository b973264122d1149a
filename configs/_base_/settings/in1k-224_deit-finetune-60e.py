"""60 epochs from a pretrained classifier, batch 512 (8 GPUs x 64).

Source: the AttnScale and FeatScale paper's code (AdamW, lr 5e-5 for 512 images, weight decay 5e-4, 1 epoch of warm-up,
cosine to 1e-6, DeiT's moving average of weights).
"""

_base_ = './in1k-224_deit-300e.py'

train_dataloader = dict(batch_size=64)
train_cfg = dict(max_epochs=60)
optim_wrapper = dict(optimizer=dict(lr=5e-5, weight_decay=5e-4))
param_scheduler = _base_.param_scheduler
param_scheduler[0].update(end=1)
param_scheduler[1].update(eta_min=1e-6, begin=1, end=60)
auto_scale_lr = dict(base_batch_size=512)
# fine-tuning goes on with the classifier's head, and the log says so if there is nothing to start from
default_hooks = dict(pretrained=dict(warn=True, head=True))
