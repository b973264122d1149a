from .atomic_checkpoint_hook import AtomicCheckpointHook
from .oversmoothing_hook import OversmoothingHook
from .pretrained_backbone_hook import PretrainedBackboneHook, check_pretrained

__all__ = [
    'AtomicCheckpointHook',
    'OversmoothingHook',
    'PretrainedBackboneHook',
    'check_pretrained',
]
