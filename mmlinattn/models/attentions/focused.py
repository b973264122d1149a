"""Focused linear attention as a module."""

from typing import Optional

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, softplus

from mmlinattn.functional import focused_linear_attention, unflatten
from mmlinattn.parts import register

from ..layers.depthwise import DepthwiseConv
from ..layers.positions import PositionTable
from ..layers.types import HW
from .base import ProjectedAttention, check_count


@register
class FocusedLinearAttention(ProjectedAttention):
    """Linear attention of *FLatten Transformer: Vision Transformer using
    Focused Linear Attention* (arXiv 2308.00442).

    A depthwise convolution of the values is added to the product. All heads share
    its d filters. As in the official code, a learned factor per channel divides queries
    and keys before they are focused, and keys have positions.

    Args:
        focusing_factor (float): Power p of the feature map, positive.
        kernel_size (int): Side of the convolution's filters, odd. Extra tokens
            are not convolved.
        map_side (int, optional): Rows and columns of the map that the keys'
            positions are stored for. They are resized for other maps; extra tokens
            have none. Default: no positions.
        Others: See :class:`ProjectedAttention`.
            FLatten-CSWin has LePE too.

    Raises:
        ValueError: If ``focusing_factor`` is not positive, ``kernel_size``
            is even, or ``map_side`` is not a positive integer.
    """

    one_matrix_per_head = False  # each channel has its own filter

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        focusing_factor: float = 3,
        kernel_size: int = 5,
        map_side: Optional[int] = None,
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
        if not focusing_factor > 0:
            raise ValueError(f'focusing_factor must be positive, got {focusing_factor}')
        self.focusing_factor = focusing_factor
        self.local_conv = DepthwiseConv(self.head_dims, kernel_size)
        # softplus of it is the factor
        self.focus_scale = nn.Parameter(torch.zeros(embed_dims))
        self.pos_embed = None
        if map_side is not None:
            check_count(map_side, 'map_side')
            self.pos_embed = PositionTable(
                embed_dims, (map_side, map_side), mode='bicubic'
            )

    def attend(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        if self.pos_embed is not None:
            positions = self.pos_embed(hw_shape)
            num_extra = k.size(1) - positions.size(1)
            k = k + pad(positions, (0, 0, num_extra, 0)).to(k.dtype)
        q, k, v = [self.split_heads(x) for x in (q, k, v)]
        local = self.local_conv(v.flatten(0, 1), hw_shape)  # (B * h, N, d)
        out = self.scale(self.product(q, k, v, hw_shape), v)
        return self.merge_heads(out + unflatten(local, 0, v.shape[:2]))

    def product(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        scale = softplus(self.focus_scale).view(self.num_heads, 1, -1)
        return focused_linear_attention(q, k, v, self.focusing_factor, scale)
