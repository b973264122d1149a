"""No weight decay on norms, position tables, agents' biases, class tokens, scaling vectors (focus_scale is FLatten's),
and LayerScale's factors (scale1, scale2)."""

optim_wrapper = dict(
    paramwise_cfg=dict(
        norm_decay_mult=0.0,
        custom_keys=dict(
            pos_embed=dict(decay_mult=0.0),
            relative_position_bias_table=dict(decay_mult=0.0),
            agent_bias=dict(decay_mult=0.0),
            query_bias=dict(decay_mult=0.0),
            focus_scale=dict(decay_mult=0.0),
            cls_token=dict(decay_mult=0.0),
            omega=dict(decay_mult=0.0),
            dc_scale=dict(decay_mult=0.0),
            hc_scale=dict(decay_mult=0.0),
            scale1=dict(decay_mult=0.0),
            scale2=dict(decay_mult=0.0),
        ),
    )
)
