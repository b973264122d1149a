from .hooks import (
    AtomicCheckpointHook,
    OversmoothingHook,
    PretrainedBackboneHook,
    check_pretrained,
)
from .optimizers import CPUAmpOptimWrapper, LayerDecayOptimWrapperConstructor
from .preflight import check_run
from .resume import checkpoint_fault, find_checkpoint

__all__ = [
    'AtomicCheckpointHook',
    'CPUAmpOptimWrapper',
    'LayerDecayOptimWrapperConstructor',
    'OversmoothingHook',
    'PretrainedBackboneHook',
    'check_pretrained',
    'check_run',
    'checkpoint_fault',
    'find_checkpoint',
]
