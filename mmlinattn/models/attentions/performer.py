"""Performer attention as a module."""

import math
from typing import Optional

from torch import Tensor

from mmlinattn.functional import orthogonal_features, performer_attention
from mmlinattn.parts import register

from ..layers.types import HW
from .base import ProjectedAttention, check_count


@register
class PerformerAttention(ProjectedAttention):
    """FAVOR+: softmax attention estimated from positive orthogonal random
    features (*Rethinking Attention with Performers*, arXiv 2009.14794).

    The features are drawn once, when the module is made, and belong to its state
    dict. The output is deterministic.

    Args:
        num_features (int, optional): Random features m. Default: d ln d, at
            least d.
        Others: See :class:`ProjectedAttention`.

    Raises:
        ValueError: If ``num_features`` is not a positive integer.
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        num_features: Optional[int] = None,
        *,
        qkv_bias: bool = True,
        lepe: bool = False,
        attn_scale: bool = False,
        shared_qk: bool = False,
        init_cfg: Optional[dict] = None,
    ) -> None:
        super().__init__(
            embed_dims,
            num_heads,
            qkv_bias=qkv_bias,
            lepe=lepe,
            attn_scale=attn_scale,
            shared_qk=shared_qk,
            init_cfg=init_cfg,
        )
        if num_features is None:
            num_features = int(self.head_dims * max(math.log(self.head_dims), 1))
        check_count(num_features, 'num_features')
        self.register_buffer(
            'features', orthogonal_features(num_features, self.head_dims)
        )

    def product(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        return performer_attention(q, k, v, self.features)
