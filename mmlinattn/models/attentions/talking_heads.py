"""The two attentions of CaiT."""

from typing import Optional

import torch
from torch import Tensor, nn

from mmlinattn.parts import register

from ..layers.types import HW
from .base import BaseAttention, ProjectedAttention
from .softmax import SoftmaxAttention


@register
class TalkingHeadsAttention(ProjectedAttention):
    """Softmax attention that mixes its heads linearly before and after the
    softmax (*Talking-Heads Attention*, arXiv 2003.02436).

    Mixing needs the attention matrices, so there is no fused form.

    Args:
        attn_drop (float): Dropout rate on attention weights.
        Others: See :class:`ProjectedAttention`.
            AttnScale acts after the second mixing.
    """

    product_kind = 'softmax_attention'  # for `analysis.count_flops`

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        attn_drop: float = 0.0,
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
        self.mix_logits = nn.Linear(num_heads, num_heads)
        self.mix_weights = nn.Linear(num_heads, num_heads)
        self.attn_drop = attn_drop

    def product(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        weights = (q * self.head_dims**-0.5) @ k.transpose(-2, -1)  # (B, h, N, N)
        weights = _mix_heads(self.mix_logits, weights).softmax(-1)
        weights = _mix_heads(self.mix_weights, weights)
        weights = nn.functional.dropout(weights, self.attn_drop, self.training)
        return weights @ v


def _mix_heads(linear: nn.Linear, x: Tensor) -> Tensor:
    """Apply a linear layer along the heads of x, (B, h, N, M)."""
    return linear(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


@register
class ClassAttention(BaseAttention):
    """Attention with the class token as its only query (*Going deeper with
    Image Transformers*, arXiv 2103.17239).

    It updates the class token. The other tokens pass through unchanged.

    Args:
        embed_dims, num_heads, init_cfg: See :class:`BaseAttention`.
        qkv_bias (bool): Biases of the three projections.
        attn_drop (float): Dropout rate on attention weights.
        attn_scale (bool): Must be False: one query has no map to sharpen.

    Raises:
        ValueError: If ``attn_scale`` is set.
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        qkv_bias: bool = True,
        attn_drop: float = 0.0,
        attn_scale: bool = False,
        init_cfg: Optional[dict] = None,
    ) -> None:
        if attn_scale:
            raise ValueError(
                'attn_scale must be False for ClassAttention, whose single '
                'query has no attention map to sharpen'
            )
        super().__init__(embed_dims, num_heads, init_cfg=init_cfg)
        self.q = nn.Linear(embed_dims, embed_dims, bias=qkv_bias)
        self.kv = nn.Linear(embed_dims, 2 * embed_dims, bias=qkv_bias)
        self.attn_drop = attn_drop
        self.proj = nn.Linear(embed_dims, embed_dims)

    def forward(self, x: Tensor, hw_shape: HW) -> Tensor:
        q, (k, v) = self.q(x[:, :1]), self.kv(x).chunk(2, dim=-1)
        token = self.proj(self.attend(q, k, v, hw_shape))
        return torch.cat((token, x[:, 1:]), dim=1)

    product = SoftmaxAttention.product  # for the one query
