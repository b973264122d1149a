from .hooks import (
    AtomicCheckpointHook,
    MESAHook,
    OversmoothingHook,
    PretrainedBackboneHook,
    ReleaseMemoryHook,
    check_pretrained,
)
from .optimizers import LayerDecayOptimWrapperConstructor
from .preflight import check_run
from .resume import check_resume, checkpoint_fault, find_checkpoint

__all__ = [
    'AtomicCheckpointHook',
    'LayerDecayOptimWrapperConstructor',
    'MESAHook',
    'OversmoothingHook',
    'PretrainedBackboneHook',
    'ReleaseMemoryHook',
    'check_pretrained',
    'check_resume',
    'check_run',
    'checkpoint_fault',
    'find_checkpoint',
]
