from .hooks import (
    AtomicCheckpointHook,
    MESAHook,
    OversmoothingHook,
    PretrainedBackboneHook,
    ReleaseMemoryHook,
    check_pretrained,
    check_start,
)
from .optimizers import LayerDecayOptimWrapperConstructor
from .preflight import check_run
from .resume import find_checkpoint

__all__ = [
    'AtomicCheckpointHook',
    'LayerDecayOptimWrapperConstructor',
    'MESAHook',
    'OversmoothingHook',
    'PretrainedBackboneHook',
    'ReleaseMemoryHook',
    'check_pretrained',
    'check_run',
    'check_start',
    'find_checkpoint',
]
