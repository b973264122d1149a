from .hooks import (
    AtomicCheckpointHook,
    MESAHook,
    PretrainedBackboneHook,
    ReleaseMemoryHook,
    check_pretrained,
)
from .optimizers import LayerDecayOptimWrapperConstructor
from .preflight import build_model, check_data
from .resume import find_checkpoint

__all__ = [
    'AtomicCheckpointHook',
    'LayerDecayOptimWrapperConstructor',
    'MESAHook',
    'PretrainedBackboneHook',
    'ReleaseMemoryHook',
    'build_model',
    'check_data',
    'check_pretrained',
    'find_checkpoint',
]
