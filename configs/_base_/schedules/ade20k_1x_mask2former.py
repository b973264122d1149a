"""ADE20K, 160k iterations, batch 16 (8 GPUs x 2), as Mask2Former trains."""

_base_ = './mask2former.py'

train_cfg = dict(type='IterBasedTrainLoop', max_iters=160000, val_interval=5000)
param_scheduler = [dict(type='PolyLR', power=0.9, eta_min=0.0, by_epoch=False, begin=0, end=160000)]
