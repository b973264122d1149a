from .base import BaseAttention
from .landmarks import (BiasedSampler, ConvSampler, PoolingSampler,
                        RandomSampler)
from .softmax import SoftmaxAttention
from .softmax_free import SoftmaxFreeAttention
from .talking_heads import ClassAttention, TalkingHeadsAttention
from .window import WindowAttention

__all__ = [
    'BaseAttention', 'BiasedSampler', 'ClassAttention', 'ConvSampler',
    'PoolingSampler', 'RandomSampler', 'SoftmaxAttention',
    'SoftmaxFreeAttention', 'TalkingHeadsAttention', 'WindowAttention'
]
