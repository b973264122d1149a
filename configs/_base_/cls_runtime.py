"""Runtime of classification. The backbone starts from scratch, as ImageNet recipes mean it, unless `pretrained` says
otherwise."""

_base_ = 'mmpretrain::_base_/default_runtime.py'

default_hooks = dict(
    checkpoint=dict(type='mmlinattn.AtomicCheckpointHook', max_keep_ckpts=3),
    pretrained=dict(type='mmlinattn.PretrainedBackboneHook', warn=False),
    release_memory=dict(type='mmlinattn.ReleaseMemoryHook'),
)
