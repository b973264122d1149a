"""Linformer attention on maps."""

from typing import Optional

from torch import Tensor, nn

from mmlinattn.functional import pad_map, to_map, to_tokens
from mmlinattn.functional.tracing import ceil_div
from mmlinattn.parts import register

from ..layers.types import HW
from .base import BaseAttention, check_count
from .softmax import SoftmaxAttention


@register
class LinformerAttention(BaseAttention):
    r"""Softmax attention to a shorter sequence of keys and values.

    *Linformer: Self-Attention with Linear Complexity* (arXiv 2006.04768):
    :math:`\sigma(Q (E K)^T / \sqrt d) F V` with learned projections E, F along
    the tokens. The paper's projections fix the length of the sequence. Here both are
    the r x r convolution of stride r and the LayerNorm of *Pyramid Vision
    Transformer* (arXiv 2102.12122), which work for maps of any size. The sequence
    gets :math:`r^2` times shorter, and the cost is :math:`N^2 / r^2`. With r above 1,
    it is bound to the map.

    Args:
        sr_ratio (int): r. Maps are zero-padded to multiples of r; 1 is standard
            attention.
        qkv_bias (bool): Biases of the three projections.
        attn_drop (float): Dropout rate on attention weights.
        Others: See :class:`BaseAttention`.

    Raises:
        ValueError: If ``sr_ratio`` is not a positive integer.
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        sr_ratio: int = 8,
        qkv_bias: bool = True,
        attn_drop: float = 0.0,
        *,
        attn_scale: bool = False,
        init_cfg: Optional[dict] = None,
    ) -> None:
        super().__init__(
            embed_dims, num_heads, attn_scale=attn_scale, init_cfg=init_cfg
        )
        check_count(sr_ratio, 'sr_ratio')
        self.sr_ratio = sr_ratio
        self.bound_to_map = sr_ratio > 1
        self.q = nn.Linear(embed_dims, embed_dims, bias=qkv_bias)
        self.kv = nn.Linear(embed_dims, 2 * embed_dims, bias=qkv_bias)
        if sr_ratio > 1:
            self.reduction = nn.Conv2d(
                embed_dims, embed_dims, sr_ratio, stride=sr_ratio
            )
            self.norm = nn.LayerNorm(embed_dims)
        self.attn_drop = attn_drop
        self.proj = nn.Linear(embed_dims, embed_dims)

    def forward(self, x: Tensor, hw_shape: HW) -> Tensor:
        k, v = self.kv(self.reduce(x, hw_shape)).chunk(2, dim=-1)
        return self.proj(self.attend(self.q(x), k, v, hw_shape))

    def key_shape(self, hw_shape: HW) -> HW:
        height, width = [ceil_div(length, self.sr_ratio) for length in hw_shape]
        return height, width

    product = SoftmaxAttention.product

    def reduce(self, x: Tensor, hw_shape: HW) -> Tensor:
        """Reduce tokens (B, N, C) to tokens (B, M, C), one for each r x r cell."""
        if self.sr_ratio == 1:
            return x
        self.check_map(x, hw_shape)
        x, padded_shape = pad_map(x, hw_shape, self.sr_ratio)
        x = self.reduction(to_map(x, padded_shape))
        return self.norm(to_tokens(x))
