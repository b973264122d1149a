"""Swin's training, batch 512 (8 GPUs x 64), with half the learning rate."""

_base_ = './in1k-224_swin-300e.py'

train_dataloader = dict(batch_size=64)
optim_wrapper = dict(optimizer=dict(lr=5e-4))
param_scheduler = _base_.param_scheduler
param_scheduler[1].update(eta_min=5e-6)
auto_scale_lr = dict(base_batch_size=512)
