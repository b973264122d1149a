"""Polarity-aware linear attention as a module."""

from typing import Optional

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from mmlinattn.functional import polarity_aware_attention
from mmlinattn.parts import register

from ..layers.types import HW
from .focused import FocusedLinearAttention


@register
class PolaFormerAttention(FocusedLinearAttention):
    """Linear attention of *PolaFormer: Polarity-aware Linear Attention for Vision
    Transformers* (arXiv 2501.15061).

    It has the convolution, the learned factors and the keys' positions of focused
    linear attention. Powers are learned, too, one per channel in 1...1 + alpha. As in
    the official code, a fourth projection of the tokens multiplies the input of the
    last one.

    Args:
        alpha (float): Range of the powers, positive.
        Others: See :class:`FocusedLinearAttention`; a head
            has an even number of channels.

    Raises:
        ValueError: If ``alpha`` is not positive, or a head has an odd number of
            channels.
    """

    gated = True

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        alpha: float = 4,
        *,
        kernel_size: int = 5,
        map_side: Optional[int] = None,
        qkv_bias: bool = True,
        lepe: bool = False,
        attn_scale: bool = False,
        shared_qk: bool = False,
        init_cfg: Optional[dict] = None,
    ) -> None:
        if not alpha > 0:
            raise ValueError(f'alpha must be positive, got {alpha}')
        # powers start in the middle of the range
        super().__init__(
            embed_dims,
            num_heads,
            1 + alpha / 2,
            kernel_size=kernel_size,
            map_side=map_side,
            qkv_bias=qkv_bias,
            lepe=lepe,
            attn_scale=attn_scale,
            shared_qk=shared_qk,
            init_cfg=init_cfg,
        )
        if self.head_dims % 2:
            raise ValueError(
                'a head must have an even number of channels, got '
                f'embed_dims={embed_dims} for num_heads={num_heads}'
            )
        self.alpha = alpha
        # sigmoid of it is the place in the range
        self.focus_power = nn.Parameter(torch.zeros(num_heads, 1, self.head_dims))

    def product(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        power = 1 + self.alpha * self.focus_power.sigmoid()
        scale = softplus(self.focus_scale).view(self.num_heads, 1, -1)
        return polarity_aware_attention(q, k, v, power, scale)
