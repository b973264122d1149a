"""The optimizer of Mask2Former.

Source: MMDetection's and MMSegmentation's (AdamW, lr 1e-4, a tenth of it in the backbone, weight decay 0.05, none on
norms and embeddings, gradients clipped at 0.01).
"""

_base_ = './no_decay.py'

# keys that are longer come first, so that norms of a backbone need keys of their own
no_decay = [
    *_base_.optim_wrapper.paramwise_cfg.custom_keys,
    'backbone.norm',
    *[f'backbone.stages.{i}.blocks.{j}.norm' for i in range(4) for j in range(18)],
    *[f'backbone.stages.{i}.blocks.{j}.attn.sampler.norm' for i in range(3) for j in range(18)],
    *[f'backbone.stages.{i}.embedding.layer.1' for i in range(4)],
    *[f'backbone.stages.0.embedding.{i}.1' for i in range(3)],
]
optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=1e-4, weight_decay=0.05, eps=1e-8, betas=(0.9, 0.999)),
    paramwise_cfg=dict(
        custom_keys=dict(
            backbone=dict(lr_mult=0.1),
            query_embed=dict(decay_mult=0.0),
            query_feat=dict(decay_mult=0.0),
            level_embed=dict(decay_mult=0.0),
            **{key: dict(lr_mult=0.1, decay_mult=0.0) for key in no_decay},
        )
    ),
    clip_grad=dict(max_norm=0.01, norm_type=2),
)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
auto_scale_lr = dict(enable=False, base_batch_size=16)
