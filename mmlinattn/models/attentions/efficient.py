"""Efficient attention as a module."""

from torch import Tensor

from mmlinattn.functional import efficient_attention
from mmlinattn.parts import register

from ..layers.types import HW
from .base import ProjectedAttention


@register
class EfficientAttention(ProjectedAttention):
    """Softmax over the channels of queries and over the tokens of keys
    (*Efficient Attention: Attention with Linear Complexities*, arXiv
    1812.01243; EFFATT in the ELFATT paper's tables).

    Its arguments are those of :class:`ProjectedAttention`.
    """

    def product(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        return efficient_attention(q, k, v)
