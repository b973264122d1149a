from .atomic_checkpoint_hook import AtomicCheckpointHook
from .mesa_hook import MESAHook
from .pretrained_backbone_hook import PretrainedBackboneHook, check_pretrained
from .release_memory_hook import ReleaseMemoryHook

__all__ = [
    'AtomicCheckpointHook',
    'MESAHook',
    'PretrainedBackboneHook',
    'ReleaseMemoryHook',
    'check_pretrained',
]
