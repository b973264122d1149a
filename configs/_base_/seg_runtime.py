"""Runtime of segmentation, and the backbone's ImageNet weights."""

_base_ = 'mmseg::_base_/default_runtime.py'

default_hooks = dict(
    timer=dict(type='IterTimerHook'),
    logger=dict(type='LoggerHook', interval=50, log_metric_by_epoch=False),
    param_scheduler=dict(type='ParamSchedulerHook'),
    checkpoint=dict(
        type='mmlinattn.AtomicCheckpointHook', by_epoch=False, interval=4000, save_best='mIoU', max_keep_ckpts=3
    ),
    sampler_seed=dict(type='DistSamplerSeedHook'),
    visualization=dict(type='SegVisualizationHook'),
    pretrained=dict(type='mmlinattn.PretrainedBackboneHook'),
)
