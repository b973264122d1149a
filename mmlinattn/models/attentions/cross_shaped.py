"""Cross-shaped windows of CSWin."""

from typing import Optional

import torch
from torch import Tensor, nn

from mmlinattn.functional import local_attention
from mmlinattn.functional.blocks import Sides
from mmlinattn.parts import register

from ..layers.depthwise import DepthwiseConv
from ..layers.types import HW
from .base import ProjectedAttention, check_count


@register
class CrossShapedWindowAttention(ProjectedAttention):
    """Softmax attention in stripes: vertical ones for the first half of the
    heads, horizontal ones for the other (*CSWin Transformer: A General Vision
    Transformer Backbone with Cross-Shaped Windows*, arXiv 2107.00652).

    Queries, keys and values are zero-padded to whole stripes, all around. Padded
    tokens are keys like all others, as in the official code. It is bound to the map.

    Args:
        embed_dims, num_heads: Channels C, and heads h, an even number.
        stripe_width (int): Width of a stripe. Its length is that of the map.
        attn_drop (float): Dropout rate on attention weights.
        lepe (bool): Adds a 3 x 3 depthwise convolution of the values inside
            the stripes.
        Others: See :class:`ProjectedAttention`. AttnScale's mean is taken over a
            stripe.

    Raises:
        ValueError: If ``num_heads`` is odd or ``stripe_width`` is not a positive
            integer.
    """

    bound_to_map = True

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        stripe_width: int = 7,
        attn_drop: float = 0.0,
        lepe: bool = True,
        *,
        qkv_bias: bool = True,
        attn_scale: bool = False,
        shared_qk: bool = False,
        init_cfg: Optional[dict] = None,
    ) -> None:
        super().__init__(
            embed_dims,
            num_heads,
            qkv_bias=qkv_bias,
            attn_scale=attn_scale,
            shared_qk=shared_qk,
            init_cfg=init_cfg,
        )
        if num_heads % 2:
            raise ValueError(
                'num_heads must be even, half for upright and half for flat '
                f'stripes, got num_heads={num_heads}'
            )
        check_count(stripe_width, 'stripe_width')
        self.stripe_width = stripe_width
        self.attn_drop = attn_drop
        self.with_lepe = lepe
        if lepe:
            self.lepe = nn.ModuleList(DepthwiseConv(embed_dims // 2) for _ in range(2))

    @property
    def stripes(self) -> tuple[Sides, Sides]:
        """Sides of the vertical and of the horizontal stripes; None is the map's."""
        return (None, self.stripe_width), (self.stripe_width, None)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        omegas = (None, None) if self.omega is None else self.omega.chunk(2)
        halves = zip(*(x.chunk(2, dim=-1) for x in (q, k, v)), self.stripes, omegas)
        outs = []
        for *qkv, stripe, omega in halves:
            q, k, v = [self.split_heads(x, self.num_heads // 2) for x in qkv]
            out = local_attention(
                q,
                k,
                v,
                hw_shape,
                stripe,
                omega=omega,
                dropout_p=self.dropout_p,
                centered=True,
            )
            outs.append(self.merge_heads(out))
        return torch.cat(outs, dim=-1)

    def encode_positions(self, v: Tensor, hw_shape: HW) -> Tensor:
        halves = zip(self.lepe, v.chunk(2, dim=-1), self.stripes)
        return torch.cat(
            [lepe(x, hw_shape, stripe, centered=True) for lepe, x, stripe in halves],
            dim=-1,
        )
