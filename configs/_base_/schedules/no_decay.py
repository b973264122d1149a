"""No weight decay on norms, position tables, agents' biases, class tokens, scaling vectors (focus_scale is FLatten's),
and LayerScale's factors (scale1, scale2)."""

optim_wrapper = dict(
    paramwise_cfg=dict(
        norm_decay_mult=0.0,
        custom_keys={
            key: dict(decay_mult=0.0)
            for key in (
                *('pos_embed', 'relative_position_bias_table', 'agent_bias', 'query_bias', 'focus_scale'),
                *('cls_token', 'omega', 'dc_scale', 'hc_scale', 'scale1', 'scale2'),
            )
        },
    )
)
