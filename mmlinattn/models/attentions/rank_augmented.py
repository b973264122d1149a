"""The two attentions of RAVLT as modules."""

from typing import Optional

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from mmlinattn.functional import rank_augmented_attention, rotate, rotate_both
from mmlinattn.parts import register

from ..layers.depthwise import DepthwiseConv
from ..layers.types import HW
from .base import ProjectedAttention


class GatedRotaryAttention(ProjectedAttention):
    """Attention with rotary positions and 5 x 5 LePE, whose output is gated by a fourth
    projection without an activation.

    Args:
        Others: See :class:`ProjectedAttention`; a head has an
            even number of channels, and LePE is always there.

    Raises:
        ValueError: If a head has an odd number of channels.
    """

    gated = True

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        *,
        qkv_bias: bool = True,
        attn_scale: bool = False,
        shared_qk: bool = False,
        init_cfg: Optional[dict] = None,
    ) -> None:
        super().__init__(
            embed_dims,
            num_heads,
            lepe=True,
            qkv_bias=qkv_bias,
            attn_scale=attn_scale,
            shared_qk=shared_qk,
            init_cfg=init_cfg,
        )
        if self.head_dims % 2:
            raise ValueError(
                'embed_dims / num_heads must be even for rotary positions, got '
                f'{embed_dims} / {num_heads}'
            )
        # the frequencies of d / 4 pairs include the lowest one
        self.steps = max(self.head_dims // 4 - 1, 1)
        self.lepe = DepthwiseConv(embed_dims, kernel_size=5)


@register
class RankAugmentedAttention(GatedRotaryAttention):
    """Rank-augmented linear attention (RALA) of *Breaking the Low-Rank Dilemma of
    Linear Attention* (arXiv 2411.07635), with the official code's rotary positions and
    5 x 5 LePE. The gate is the paper's modulation of the output.

    Its arguments are those of :class:`GatedRotaryAttention`.
    """

    def product(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        return rank_augmented_attention(q, k, v, hw_shape, self.steps)


@register
class RotarySoftmaxAttention(GatedRotaryAttention):
    """Softmax attention with rotary positions, 5 x 5 LePE and a gate, as in the last
    two stages of RAVLT (arXiv 2411.07635).

    Args:
        attn_drop (float): Dropout rate on attention weights.
        Others: See :class:`GatedRotaryAttention`.
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        attn_drop: float = 0.0,
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
        self.attn_drop = attn_drop

    def attend_heads(self, projections: Tensor, hw_shape: HW) -> Tensor:
        """See :meth:`ProjectedAttention.attend_heads`; queries and keys turn
        together, unless a subclass has its own product."""
        has_product = type(self).product is not RotarySoftmaxAttention.product
        if has_product or self.shared_qk or self.omega is not None:
            return super().attend_heads(projections, hw_shape)
        heads = self.split_heads(projections, 4 * self.num_heads)
        qk, v, _ = heads.split((2 * self.num_heads, *[self.num_heads] * 2), 1)
        q, k = rotate(qk, hw_shape, self.steps).to(v.dtype).chunk(2, 1)
        return self.softmax_attention(q, k, v)

    def product(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        q, k = [x.to(v.dtype) for x in rotate_both(q, k, hw_shape, self.steps)]
        return self.softmax_attention(q, k, v)

    def softmax_attention(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return the attention of turned heads (B, h, N, d)."""
        return scaled_dot_product_attention(q, k, v, dropout_p=self.dropout_p)
