"""ImageNet, 300 epochs, batch 1024, as Swin trains.

Source: Swin's recipe (AdamW, lr 1e-3, weight decay 0.05, 20 epochs of warm-up,
cosine to 1e-5, gradients clipped at 5).
"""

_base_ = './in1k_300e.py'

optim_wrapper = dict(clip_grad=dict(max_norm=5.0))

param_scheduler = [
    dict(
        type='LinearLR',
        start_factor=1e-3,
        by_epoch=True,
        begin=0,
        end=20,
        convert_to_iter_based=True,
    ),
    dict(
        type='CosineAnnealingLR',
        eta_min=1e-5,
        by_epoch=True,
        begin=20,
        end=300,
        convert_to_iter_based=True,
    ),
]
