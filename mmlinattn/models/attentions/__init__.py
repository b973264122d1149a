from .agent import AgentAttention
from .base import BaseAttention, ProjectedAttention
from .cross_shaped import CrossShapedWindowAttention
from .efficient import EfficientAttention
from .elfatt import ELFATT
from .focused import FocusedLinearAttention
from .landmarks import BiasedSampler, ConvSampler, PoolingSampler, RandomSampler
from .linformer import LinformerAttention
from .nystrom import NystromAttention
from .performer import PerformerAttention
from .softmax import SoftmaxAttention
from .softmax_free import SoftmaxFreeAttention
from .talking_heads import ClassAttention, TalkingHeadsAttention
from .window import WindowAttention

__all__ = [
    'ELFATT',
    'AgentAttention',
    'BaseAttention',
    'BiasedSampler',
    'ClassAttention',
    'ConvSampler',
    'CrossShapedWindowAttention',
    'EfficientAttention',
    'FocusedLinearAttention',
    'LinformerAttention',
    'NystromAttention',
    'PerformerAttention',
    'PoolingSampler',
    'ProjectedAttention',
    'RandomSampler',
    'SoftmaxAttention',
    'SoftmaxFreeAttention',
    'TalkingHeadsAttention',
    'WindowAttention',
]
