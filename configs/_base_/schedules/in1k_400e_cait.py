"""ImageNet, 400 epochs, batch 1024, as CaiT trains from scratch: DeiT's recipe, longer."""

_base_ = './in1k_300e_deit.py'

train_cfg = dict(max_epochs=400)
param_scheduler = _base_.param_scheduler
param_scheduler[1].update(end=400)
