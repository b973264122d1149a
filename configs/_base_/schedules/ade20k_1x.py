"""UperNet on ADE20K, 160k iterations, batch 16 (4 GPUs x 4).

Source: the SOFT++ paper (AdamW, lr 6e-4 as printed, ten times what is usual for UperNet; 160k at 512 x 512). Not
printed, so ours: weight decay, and warm-up and linear decay as in Swin's recipe.
"""

_base_ = './no_decay.py'

train_cfg = dict(type='IterBasedTrainLoop', max_iters=160000, val_interval=16000)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
optim_wrapper = dict(type='OptimWrapper', optimizer=dict(type='AdamW', lr=6e-4, betas=(0.9, 0.999), weight_decay=0.01))
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-6, by_epoch=False, begin=0, end=1500),
    dict(type='PolyLR', power=1.0, eta_min=0.0, by_epoch=False, begin=1500, end=160000),
]
auto_scale_lr = dict(enable=False, base_batch_size=16)
