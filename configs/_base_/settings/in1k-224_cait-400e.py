"""CaiT's training from scratch: DeiT's recipe, 400 epochs."""

_base_ = './in1k-224_deit-300e.py'

train_cfg = dict(max_epochs=400)
param_scheduler = _base_.param_scheduler
param_scheduler[1].update(end=400)
