from .hooks.atomic_checkpoint_hook import AtomicCheckpointHook
from .hooks.class_rows_hook import ClassRowsHook
from .hooks.divergence_hook import DivergenceError, DivergenceHook
from .hooks.mesa_hook import MESAHook
from .hooks.pretrained_backbone_hook import PretrainedBackboneHook, check_pretrained
from .hooks.release_memory_hook import ReleaseMemoryHook
from .layer_decay import LayerDecayOptimWrapperConstructor
from .preflight import (
    build_model,
    check_data,
    check_inherited,
    check_parts,
    check_strides,
    parts_of,
    predicting_part,
    read_photos,
)
from .resume import find_checkpoint

__all__ = [
    'AtomicCheckpointHook',
    'ClassRowsHook',
    'DivergenceError',
    'DivergenceHook',
    'LayerDecayOptimWrapperConstructor',
    'MESAHook',
    'PretrainedBackboneHook',
    'ReleaseMemoryHook',
    'build_model',
    'check_data',
    'check_inherited',
    'check_parts',
    'check_pretrained',
    'check_strides',
    'find_checkpoint',
    'parts_of',
    'predicting_part',
    'read_photos',
]
