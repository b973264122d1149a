"""Runtime of detection, and the backbone's ImageNet weights.

A config that sets `custom_hooks` replaces this list: it has to repeat the hook.
"""

_base_ = 'mmdet::_base_/default_runtime.py'

pretrained = None
custom_hooks = [dict(type='mmlinattn.PretrainedBackboneHook')]

default_hooks = dict(checkpoint=dict(max_keep_ckpts=3))
