"""What our configs change in MMRotate's 12 epochs on DOTA, batch 2 (1 GPU x 2): the optimizer, and our hooks.

The optimizer is that of MMRotate's RoI Transformer with Swin-T (AdamW, lr 1e-4, weight decay 0.05), but for the
backbone's rate, which is a tenth there.
"""

dota_optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=1e-4, betas=(0.9, 0.999), weight_decay=0.05),
    clip_grad=dict(max_norm=35, norm_type=2),
    paramwise_cfg=dict(
        norm_decay_mult=0.0,
        custom_keys=dict(pos_embed=dict(decay_mult=0.0), relative_position_bias_table=dict(decay_mult=0.0)),
    ),
)
dota_hooks = dict(
    checkpoint=dict(type='mmlinattn.AtomicCheckpointHook', max_keep_ckpts=3),
    pretrained=dict(type='mmlinattn.PretrainedBackboneHook'),
)
