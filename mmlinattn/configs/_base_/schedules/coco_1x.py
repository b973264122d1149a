"""COCO, 12 epochs, batch 16 (8 GPUs x 2)."""

from mmengine.optim import LinearLR, MultiStepLR, OptimWrapper
from mmengine.runner import EpochBasedTrainLoop, TestLoop, ValLoop
from torch.optim import AdamW

train_cfg = dict(type=EpochBasedTrainLoop, max_epochs=12, val_interval=1)
val_cfg = dict(type=ValLoop)
test_cfg = dict(type=TestLoop)
optim_wrapper = dict(
    type=OptimWrapper,
    optimizer=dict(type=AdamW, lr=1e-4, betas=(0.9, 0.999), weight_decay=0.01),
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
    ),
)
param_scheduler = [
    dict(type=LinearLR, start_factor=0.001, by_epoch=False, begin=0, end=500),
    dict(
        type=MultiStepLR, begin=0, end=12, by_epoch=True, milestones=[8, 11], gamma=0.1
    ),
]
auto_scale_lr = dict(enable=False, base_batch_size=16)
