"""Runtime of detection, and the backbone's ImageNet weights."""

_base_ = 'mmdet::_base_/default_runtime.py'

default_hooks = dict(
    checkpoint=dict(type='mmlinattn.AtomicCheckpointHook', max_keep_ckpts=3),
    pretrained=dict(type='mmlinattn.PretrainedBackboneHook'),
)
