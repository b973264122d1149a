"""The block of ViT^3 as a module."""

import math
from typing import Optional

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from mmlinattn.functional import (
    rotate_both,
    to_map,
    to_tokens,
    trained_conv,
    trained_swiglu,
    turned_heads,
    without_extra_tokens,
)
from mmlinattn.functional.tracing import is_exported
from mmlinattn.parts import register

from ..layers.positions import learned_table
from ..layers.types import HW
from .base import BaseAttention


@register
class TTTAttention(BaseAttention):
    """Test-time training of *ViT^3: Unlocking Test-Time Training in Vision* (arXiv
    2512.01643): in each forward pass, two small networks learn the values of the keys
    in one step, and read the queries.

    One is a gated network for each head. The other is a 3 x 3 depthwise convolution of
    one more head, with projections of its own, whose output joins that of the heads.
    Extra tokens are not convolved. There is no attention matrix: the output is not
    linear in the values, and AttnScale subtracts its own mean.

    Args:
        embed_dims (int): Channels C.
        num_heads (int): Heads h.
        rotary (bool): Rotary positions of all C channels, an even number, for the gated
            network. H-ViT^3 has them, ViT^3 does not.
        Others: See :class:`BaseAttention`.

    Raises:
        ValueError: If ``embed_dims`` is odd, with ``rotary``.
    """

    linear_in_values = False

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        rotary: bool = True,
        *,
        attn_scale: bool = False,
        init_cfg: Optional[dict] = None,
    ) -> None:
        super().__init__(
            embed_dims, num_heads, attn_scale=attn_scale, init_cfg=init_cfg
        )
        if rotary and embed_dims % 2:
            raise ValueError(
                f'embed_dims must be even for rotary positions, got {embed_dims}'
            )
        self.rotary = rotary
        dims = self.head_dims
        self.qkv = nn.Linear(embed_dims, 3 * (embed_dims + dims))
        self.w1, self.w2, self.w3 = [
            learned_table(*shape)
            for shape in (*[(1, num_heads, dims, dims)] * 2, (dims, 1, 3, 3))
        ]
        self.proj = nn.Linear(embed_dims + dims, embed_dims)

    def forward(self, x: Tensor, hw_shape: HW) -> Tensor:
        dims = self.embed_dims
        qk, v, others = self.qkv(x).split((2 * dims, dims, 3 * self.head_dims), -1)
        convolved = self.convolve(others, hw_shape)
        if self.omega is None and self.attends_as(TTTAttention):
            heads = self.attend_together(qk, v, hw_shape)
            out = torch.cat((heads, convolved.unsqueeze(2)), 2).flatten(2)
        else:
            q, k = qk.chunk(2, -1)
            out = torch.cat((self.attend(q, k, v, hw_shape), convolved), -1)
        return self.proj(out)

    def attend_together(self, qk: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        """Return :meth:`attend` of queries and keys (B, N, 2 C), which turn together,
        and values (B, N, C): (B, N, h, d)."""
        if self.rotary:
            q, k = turned_heads(qk, hw_shape, self.num_heads)
        else:
            q, k = self.split_heads(qk, 2 * self.num_heads).chunk(2, 1)
        out = trained_swiglu(q, k, self.split_heads(v), self.w1, self.w2)
        return out.transpose(1, 2)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        if self.rotary:
            q, k = rotate_both(q, k, hw_shape, self.embed_dims // 4)
        q, k, v = [self.split_heads(x) for x in (q, k, v)]
        out = trained_swiglu(q, k, v, self.w1, self.w2)
        return self.merge_heads(self.scale(out, out))

    def convolve(self, qkv: Tensor, hw_shape: HW) -> Tensor:
        """Compute the convolution's output (B, N, d) of queries, keys and values (B, N,
        3 d)."""
        num_extra = qkv.size(1) - math.prod(hw_shape)
        maps = to_map(without_extra_tokens(qkv, hw_shape), hw_shape)
        q, k, v = maps.chunk(3, 1)
        out = to_tokens(trained_conv(q, k, v, self.w3))
        if is_exported() or num_extra:
            out = pad(out, (0, 0, num_extra, 0))
        return out
