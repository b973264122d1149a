from .hooks import PretrainedBackboneHook, check_pretrained
from .optimizers import LayerDecayOptimWrapperConstructor
from .resume import checkpoint_fault, find_checkpoint

__all__ = [
    'LayerDecayOptimWrapperConstructor',
    'PretrainedBackboneHook',
    'check_pretrained',
    'checkpoint_fault',
    'find_checkpoint',
]
