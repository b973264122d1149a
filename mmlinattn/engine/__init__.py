from .hooks import PretrainedBackboneHook, check_pretrained
from .resume import checkpoint_fault, find_checkpoint

__all__ = [
    'PretrainedBackboneHook',
    'check_pretrained',
    'checkpoint_fault',
    'find_checkpoint',
]
