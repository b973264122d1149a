"""UperNet on Cityscapes, 120k iterations: three times as long as 1x."""

_base_ = './cityscapes-seg_1x.py'

train_cfg = dict(max_iters=120000, val_interval=4000)

param_scheduler = [
    dict(type='LinearLR', start_factor=1e-6, by_epoch=False, begin=0, end=1500),
    dict(type='PolyLR', power=1.0, eta_min=0.0, by_epoch=False, begin=1500, end=120000),
]
