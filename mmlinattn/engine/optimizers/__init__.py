from .cpu_amp import CPUAmpOptimWrapper
from .layer_decay import LayerDecayOptimWrapperConstructor

__all__ = ['CPUAmpOptimWrapper', 'LayerDecayOptimWrapperConstructor']
