"""Attentions. An import here registers a class."""

from .agent import AgentAttention
from .base import BaseAttention, ProjectedAttention
from .cross_shaped import CrossShapedWindowAttention
from .efficient import EfficientAttention
from .elfatt import ELFATT
from .focused import FocusedLinearAttention
from .gaussian import GaussianAttention
from .inline import InLineAttention
from .landmarks import BiasedSampler, ConvSampler, PoolingSampler, RandomSampler
from .linformer import LinformerAttention
from .magnitude_aware import MagnitudeAwareAttention
from .mlla import MLLAAttention
from .multihead import MultiheadSelfAttention
from .nystrom import NystromAttention
from .performer import PerformerAttention
from .polaformer import PolaFormerAttention
from .rank_augmented import RankAugmentedAttention, RotarySoftmaxAttention
from .softmax import SoftmaxAttention
from .softmax_free import SoftmaxFreeAttention
from .talking_heads import ClassAttention, TalkingHeadsAttention
from .ttt import TTTAttention
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
    'GaussianAttention',
    'InLineAttention',
    'LinformerAttention',
    'MLLAAttention',
    'MagnitudeAwareAttention',
    'MultiheadSelfAttention',
    'NystromAttention',
    'PerformerAttention',
    'PolaFormerAttention',
    'PoolingSampler',
    'ProjectedAttention',
    'RandomSampler',
    'RankAugmentedAttention',
    'RotarySoftmaxAttention',
    'SoftmaxAttention',
    'SoftmaxFreeAttention',
    'TTTAttention',
    'TalkingHeadsAttention',
    'WindowAttention',
]
