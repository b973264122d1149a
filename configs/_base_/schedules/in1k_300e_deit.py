"""ImageNet, 300 epochs, batch 1024, as DeiT trains.

Source: DeiT's recipe and the code of AttnScale and FeatScale built on it (AdamW,
lr 1e-3, weight decay 0.05, 5 epochs of warm-up, cosine to 1e-5, no clipping).
"""

_base_ = './in1k_300e.py'

optim_wrapper = dict(clip_grad=None)

param_scheduler = [
    dict(
        type='LinearLR',
        start_factor=1e-3,
        by_epoch=True,
        begin=0,
        end=5,
        convert_to_iter_based=True,
    ),
    dict(
        type='CosineAnnealingLR',
        eta_min=1e-5,
        by_epoch=True,
        begin=5,
        end=300,
        convert_to_iter_based=True,
    ),
]
