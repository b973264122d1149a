"""Moved to :mod:`mmlinattn.models.layers`."""

from mmlinattn.deprecation import moved_module

__getattr__ = moved_module(__name__, 'mmlinattn.models.layers', until='0.3')
