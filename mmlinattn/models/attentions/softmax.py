"""Standard attention."""

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from typing_extensions import Unpack

from mmlinattn.registry import MODELS

from ..layers.types import HW
from .base import LePEOptions, ProjectedAttention


@MODELS.register_module()
class SoftmaxAttention(ProjectedAttention):
    """Multi-head softmax attention (*Attention Is All You Need*).

    CSWin's last stage and *ELFATT*'s VaniATT are this attention with LePE.

    Args:
        attn_drop (float): Dropout rate on attention weights. With AttnScale, dropped
            weights are scaled, which has the same mean as dropping scaled weights.
        embed_dims, num_heads, **kwargs: See :class:`ProjectedAttention`.
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        attn_drop: float = 0.0,
        **kwargs: Unpack[LePEOptions],
    ) -> None:
        super().__init__(embed_dims, num_heads, **kwargs)
        self.attn_drop = attn_drop

    def product(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        return scaled_dot_product_attention(q, k, v, dropout_p=self.dropout_p)
