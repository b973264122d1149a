"""Standard attention."""

from typing import Optional

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from mmlinattn.parts import register

from ..layers.types import HW
from .base import ProjectedAttention


@register
class SoftmaxAttention(ProjectedAttention):
    """Multi-head softmax attention (*Attention Is All You Need*).

    CSWin's last stage and *ELFATT*'s VaniATT are this attention with LePE.

    Args:
        attn_drop (float): Dropout rate on attention weights. With AttnScale, dropped
            weights are scaled, which has the same mean as dropping scaled weights.
        Others: See :class:`ProjectedAttention`.
    """

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
        self.attn_drop = attn_drop

    def product(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        return scaled_dot_product_attention(q, k, v, dropout_p=self.dropout_p)
