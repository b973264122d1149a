from .base import BaseAttention
from .landmarks import (BiasedSampler, ConvSampler, PoolingSampler,
                        RandomSampler)
from .softmax import SoftmaxAttention
from .softmax_free import SoftmaxFreeAttention

__all__ = [
    'BaseAttention', 'BiasedSampler', 'ConvSampler', 'PoolingSampler',
    'RandomSampler', 'SoftmaxAttention', 'SoftmaxFreeAttention'
]
