from .hooks import PretrainedBackboneHook
from .optimizers import LayerDecayOptimWrapperConstructor

__all__ = ['LayerDecayOptimWrapperConstructor', 'PretrainedBackboneHook']
