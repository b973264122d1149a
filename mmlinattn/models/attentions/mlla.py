"""The attention of MLLA as a module."""

from typing import Optional

from torch import Tensor, nn
from torch.nn.functional import silu

from mmlinattn.functional import add_mlla_attention, mlla_attention
from mmlinattn.parts import register

from ..layers.depthwise import DepthwiseConv
from ..layers.types import HW
from .base import BaseAttention


@register
class MLLAAttention(BaseAttention):
    """Linear attention of *Demystify Mamba in Vision: A Linear Attention Perspective*
    (arXiv 2405.16605), with all layers between the norm and the shortcut of its block.

    Values are the projected, convolved and activated input; queries and keys are their
    projections. LePE of the values is added, and SiLU of another projection of the
    input gates the result. Extra tokens are neither convolved nor turned. Weights of a
    row need not sum to 1, so AttnScale is not exactly the paper's high-pass filter.

    Args:
        embed_dims (int): Channels C, an even number.
        Others: See :class:`BaseAttention`.

    Raises:
        ValueError: If ``embed_dims`` is odd.
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        *,
        attn_scale: bool = False,
        init_cfg: Optional[dict] = None,
    ) -> None:
        super().__init__(
            embed_dims, num_heads, attn_scale=attn_scale, init_cfg=init_cfg
        )
        if embed_dims % 2:
            raise ValueError(
                f'embed_dims must be even for rotary positions, got {embed_dims}'
            )
        self.in_proj = nn.Linear(embed_dims, embed_dims)
        self.conv = DepthwiseConv(embed_dims)
        self.qk = nn.Linear(embed_dims, 2 * embed_dims)
        self.lepe = DepthwiseConv(embed_dims)
        self.gate = nn.Linear(embed_dims, embed_dims)
        self.proj = nn.Linear(embed_dims, embed_dims)

    def forward(self, x: Tensor, hw_shape: HW) -> Tensor:
        v = silu(self.conv.convolve_map(self.in_proj(x), hw_shape))
        qk, positions = self.qk(v), self.lepe(v, hw_shape)
        if self.omega is None and self.attends_as(MLLAAttention):
            out = add_mlla_attention(positions, qk, v, hw_shape, self.num_heads)
        else:
            q, k = qk.chunk(2, -1)
            out = self.attend(q, k, v, hw_shape) + positions
        return self.proj(out * silu(self.gate(x)))

    def attend(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        out = mlla_attention(q, k, v, hw_shape, self.num_heads)
        if self.omega is not None:
            out = self.scale(out, self.split_heads(v))
        return self.merge_heads(out)
