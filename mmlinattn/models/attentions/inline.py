"""InLine attention as a module."""

from typing import Optional

from torch import Tensor, nn
from torch.nn.functional import pad

from mmlinattn.functional import (
    dynamic_conv2d,
    inline_attention,
    to_map,
    to_tokens,
    without_extra_tokens,
)
from mmlinattn.parts import register

from ..layers.types import HW
from .base import ProjectedAttention

_SIDE = 3  # of the filters


@register
class InLineAttention(ProjectedAttention):
    """Linear attention of *Bridging the Divide: Reconsidering Softmax and Linear
    Attention* (arXiv 2412.06590).

    A 3 x 3 depthwise convolution of the values is added to the product. Its filters
    differ for each image: two projections inside the heads make them of the mean token.
    Extra tokens are not convolved.

    Args:
        reads_shortcut (bool): The mean token is that of the block's input before its
            norm, as in InLine-CSWin; otherwise it is that of the attention's input.
        Others: See :class:`ProjectedAttention`.
            InLine-CSWin has LePE too.
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        reads_shortcut: bool = False,
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
        self.reads_shortcut = reads_shortcut
        filter_dims = _SIDE**2 * embed_dims
        self.filters = nn.Sequential(
            nn.Conv1d(embed_dims, embed_dims, 1, groups=num_heads),
            nn.GELU(),
            nn.Conv1d(embed_dims, filter_dims, 1, groups=num_heads),
        )

    def forward(
        self, x: Tensor, hw_shape: HW, shortcut: Optional[Tensor] = None
    ) -> Tensor:
        """See :class:`BaseAttention`; ``shortcut`` is the block's input, (B, N, C)."""
        q, k, v = self.project(x)
        out = self.attend(q, k, v, hw_shape)
        out = out + self.convolve(v, hw_shape, x if shortcut is None else shortcut)
        if self.with_lepe:
            out = out + self.encode_positions(v, hw_shape)
        return self.proj(out)

    def product(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        return inline_attention(q, k, v)

    def convolve(self, v: Tensor, hw_shape: HW, tokens: Tensor) -> Tensor:
        """Convolve values (B, N, C), each image with the filters of its own tokens."""
        height, width = hw_shape
        num_extra = v.size(1) - height * width
        filters = self.filters(tokens.mean(1).unsqueeze(-1))  # (B, 9C, 1)
        filters = filters.view(-1, self.embed_dims, _SIDE, _SIDE)
        maps = to_map(without_extra_tokens(v, hw_shape), hw_shape)
        maps = dynamic_conv2d(maps, filters)
        return pad(to_tokens(maps), (0, 0, num_extra, 0))
