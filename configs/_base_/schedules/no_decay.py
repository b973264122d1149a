"""No weight decay on norms, position tables, class tokens, scaling vectors."""
optim_wrapper = dict(
    paramwise_cfg=dict(
        norm_decay_mult=0.,
        custom_keys=dict(
            pos_embed=dict(decay_mult=0.),
            cls_token=dict(decay_mult=0.),
            omega=dict(decay_mult=0.),
            dc_scale=dict(decay_mult=0.),
            hc_scale=dict(decay_mult=0.))))
