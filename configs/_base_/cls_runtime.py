"""Runtime of classification."""

_base_ = 'mmpretrain::_base_/default_runtime.py'

default_hooks = dict(checkpoint=dict(max_keep_ckpts=3))
