"""ELFATT."""

from typing import Any, Optional

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from mmlinattn.functional import (
    blockify,
    blocks_to_map,
    efficient_attention,
    elfatt_attention,
    square_side,
    unflatten,
)
from mmlinattn.parts import register

from ..layers.depthwise import DepthwiseConv
from ..layers.types import HW
from .base import ProjectedAttention


@register
class ELFATT(ProjectedAttention):
    """A global and a local half side by side (*ELFATT: Efficient Linear Fast
    Attention for Vision Transformers*, arXiv 2501.06098).

    The first c1 channels of queries, keys and values go through efficient
    attention over the whole map, the other c2 through softmax attention inside
    square blocks, each with LePE. Each half has num_heads // 2 heads, but at least
    one, whatever its share of the channels. A half that has all channels has all
    heads. It is bound to the map.

    Args:
        embed_dims, num_heads: Channels C = c1 + c2, and heads.
        block_size (int): Tokens in a block of the local half, a square number.
            Queries, keys and values are zero-padded to whole blocks.
        split_ratio (float): Share c1 / C of the global half: 1 is efficient
            attention, 0 is attention inside blocks.
        lepe (bool): Adds a 3 x 3 depthwise convolution of the values, in the
            local half inside the blocks.
        mask_padding (bool): Masks padded tokens, which rules out kernels that
            take no mask (FlashAttention).
        Others: See :class:`ProjectedAttention`. AttnScale has a factor for each
            head of each half; its mean is taken over a block in the local half.

    Raises:
        ValueError: If ``block_size`` is not a square number, or ``split_ratio`` is
            not in [0, 1] or does not give all heads of a half equally many
            channels.
    """

    bound_to_map = True

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        block_size: int = 196,
        split_ratio: float = 0.5,
        lepe: bool = True,
        mask_padding: bool = False,
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
        side = square_side(block_size, 'block_size')
        self.block_size = block_size
        self.block_shape = (side, side)
        self.mask_padding = mask_padding
        self.half_dims, self.half_heads = self.divide(split_ratio)
        if self.omega is not None:
            self.omega = nn.Parameter(torch.zeros(sum(self.half_heads)))
        self.with_lepe = lepe
        self.global_lepe: Any
        self.local_lepe: Any
        self.global_lepe, self.local_lepe = (
            DepthwiseConv(dims) if lepe and dims else None for dims in self.half_dims
        )

    def divide(self, split_ratio: float) -> tuple[HW, HW]:
        """Return channels and heads of the global and the local half."""
        if not 0 <= split_ratio <= 1:
            raise ValueError(f'split_ratio must be in [0, 1], got {split_ratio}')
        global_dims = round(split_ratio * self.embed_dims)
        dims = (global_dims, self.embed_dims - global_dims)
        if 0 in dims:
            heads = (0, self.num_heads) if not global_dims else (self.num_heads, 0)
        else:
            heads = (max(self.num_heads // 2, 1),) * 2
        whole = abs(split_ratio * self.embed_dims - global_dims) < 1e-6
        if not whole or any(d % h for d, h in zip(dims, heads) if h):
            raise ValueError(
                'split_ratio must give each half a multiple of '
                f'{max(heads)} channels, one or more for each of its heads, '
                f'got split_ratio={split_ratio} for embed_dims='
                f'{self.embed_dims} and num_heads={self.num_heads}'
            )
        return dims, heads

    @property
    def dims_of_heads(self) -> tuple[int, ...]:
        return tuple(
            dims // heads
            for dims, heads in zip(self.half_dims, self.half_heads)
            for _ in range(heads)
        )

    def forward(self, x: Tensor, hw_shape: HW) -> Tensor:
        """As :meth:`ProjectedAttention.forward`. Where nothing but the output is asked
        for, queries, keys and values are cut into blocks together, once for the
        attention and LePE."""
        is_own = self.attends_as(ELFATT) and type(self) is ELFATT
        if not (is_own and self.joins_projections):
            return super().forward(x, hw_shape)
        self.check_map(x, hw_shape)
        qkv = unflatten(self.qkv(x), -1, (3, self.embed_dims))
        global_half, local_half = qkv.split(self.half_dims, -1)
        halves = (
            unflatten(self.attend_globally(global_half, hw_shape), 1, hw_shape),
            self.attend_in_blocks(local_half, hw_shape),
        )
        return self.proj(torch.cat(halves, -1).flatten(1, 2))

    @property
    def joins_projections(self) -> bool:
        """True for the options of the paper: two halves with LePE, three projections,
        no AttnScale and no mask."""
        usual = self.with_lepe and all(self.half_heads) and self.omega is None
        return usual and not self.mask_padding and not self.shared_qk

    def attend_globally(self, qkv: Tensor, hw_shape: HW) -> Tensor:
        """Return the global half with LePE, (B, N, 3, c1) to (B, N, c1)."""
        heads = unflatten(qkv, -1, (self.half_heads[0], -1)).permute(2, 0, 3, 1, 4)
        q, k, v = heads.unbind()
        positions = self.global_lepe(qkv.select(2, 2), hw_shape)
        return self.add_heads(positions, efficient_attention(q, k, v))

    def attend_in_blocks(self, qkv: Tensor, hw_shape: HW) -> Tensor:
        """Return the local half with LePE, (B, N, 3, c2) to (B, H, W, c2)."""
        blocks = blockify(qkv.permute(2, 0, 1, 3), hw_shape, self.block_shape)
        num_blocks = blocks.shape[1:3]  # B, n
        blocks = blocks.flatten(1, 2)  # (3, B * n, s * s, c2)
        heads = unflatten(blocks, -1, (self.half_heads[1], -1)).transpose(2, 3)
        q, k, v = heads.unbind()
        positions = self.local_lepe(blocks.select(0, 2), self.block_shape)
        out = self.add_heads(positions, scaled_dot_product_attention(q, k, v))
        return blocks_to_map(unflatten(out, 0, num_blocks), hw_shape, self.block_shape)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        halves = self.half_dims, self.half_heads
        return elfatt_attention(
            q, k, v, hw_shape, self.block_size, *halves, self.mask_padding, self.omega
        )

    def encode_positions(self, v: Tensor, hw_shape: HW) -> Tensor:
        halves = v.split(self.half_dims, -1)
        layers = ((self.global_lepe, None), (self.local_lepe, self.block_shape))
        return torch.cat(
            [
                lepe(half, hw_shape, block)
                for half, (lepe, block) in zip(halves, layers)
                if lepe is not None
            ],
            -1,
        )
