"""Attentions. The package imports every module of this folder and exports the classes
that they register."""

from mmlinattn.registry import register_modules

from .base import BaseAttention, ProjectedAttention  # noqa: F401
from .landmarks import BiasedSampler, ConvSampler, PoolingSampler, RandomSampler  # noqa: F401
from .multihead import MultiheadSelfAttention  # noqa: F401

globals().update(register_modules(__name__))
__all__ = [name for name in globals() if name[0].isupper()]
