"""Multi-scale linear attention as a module."""

from collections.abc import Sequence
from typing import Optional

import torch
from torch import Tensor, nn

from mmlinattn.functional import relu_linear_attention, unflatten
from mmlinattn.parts import register

from ..layers.depthwise import DepthwiseConv
from ..layers.types import HW
from .base import BaseAttention


class Aggregation(nn.Module):
    """Queries, keys and values of a coarser scale: a depthwise convolution, and a
    projection of the channels of each head.

    Args:
        embed_dims (int): Channels C of the queries.
        num_heads (int): Heads h.
        kernel_size (int): Side of the depthwise filters, odd.
    """

    def __init__(self, embed_dims: int, num_heads: int, kernel_size: int) -> None:
        super().__init__()
        channels = 3 * embed_dims
        self.depthwise = DepthwiseConv(channels, kernel_size, bias=False)
        self.pointwise = nn.Conv2d(
            channels, channels, 1, groups=3 * num_heads, bias=False
        )

    def forward(self, qkv: Tensor, hw_shape: HW) -> Tensor:
        """(B, N, 3 C) to (B, N, 3 C). Extra tokens have no neighbors, and are
        projected only."""
        out = self.depthwise.convolve_map(qkv, hw_shape)
        return (
            self.pointwise(out.transpose(1, 2).unsqueeze(-1)).flatten(2).transpose(1, 2)
        )


@register
class MultiScaleLinearAttention(BaseAttention):
    """ReLU linear attention at several scales (*EfficientViT: Multi-Scale Linear
    Attention for High-Resolution Dense Prediction*, arXiv 2205.14756).

    One projection makes queries, keys and values. Each further scale has h more heads,
    whose queries, keys and values are aggregated from those of their neighbors. Heads
    of all scales are projected back together.

    Args:
        embed_dims (int): Channels C.
        num_heads (int): Heads h of each scale.
        scales (Sequence[int]): Sides of the filters of the further scales, odd. Without
            any, this is linear attention of the tokens themselves.
        qkv_bias (bool): Bias of the first projection.
        proj_bias (bool): Bias of the last projection, which EfficientViT replaces by a
            BatchNorm.
        attn_scale, init_cfg: See :class:`BaseAttention`.

    Attributes:
        num_heads (int): Heads of all scales.

    Raises:
        ValueError: If a scale is even.
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        scales: Sequence[int] = (5,),
        qkv_bias: bool = False,
        proj_bias: bool = True,
        *,
        attn_scale: bool = False,
        init_cfg: Optional[dict] = None,
    ) -> None:
        super().__init__(embed_dims, num_heads, init_cfg=init_cfg)
        self.qkv = nn.Linear(embed_dims, 3 * embed_dims, bias=qkv_bias)
        self.aggregations = nn.ModuleList(
            Aggregation(embed_dims, num_heads, scale) for scale in scales
        )
        num_scales = 1 + len(self.aggregations)
        self.num_heads = num_scales * num_heads
        if attn_scale:
            self.omega = nn.Parameter(torch.zeros(self.num_heads))
        self.proj = nn.Linear(num_scales * embed_dims, embed_dims, bias=proj_bias)

    def forward(self, x: Tensor, hw_shape: HW) -> Tensor:
        qkv = self.qkv(x)
        scales = [qkv, *[layer(qkv, hw_shape) for layer in self.aggregations]]
        # as in the official code, queries, keys and values alternate head by head
        heads = [unflatten(scale, -1, (-1, 3, self.head_dims)) for scale in scales]
        parts = zip(*[scale.unbind(-2) for scale in heads])
        q, k, v = [torch.cat(part, -2).flatten(-2) for part in parts]
        return self.proj(self.attend(q, k, v, hw_shape))

    def product(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        return relu_linear_attention(q, k, v)
