"""ELFATT."""

import torch
from torch import nn

from mmlinattn import functional as F
from mmlinattn.registry import MODELS

from ..layers import LePE
from .base import ProjectedAttention


@MODELS.register_module()
class ELFATT(ProjectedAttention):
    """A global and a local half side by side (*ELFATT: Efficient Linear Fast
    Attention for Vision Transformers*, arXiv 2501.06098).

    The first c1 channels of queries, keys and values go through efficient
    attention over the whole map, the other c2 through softmax attention inside
    square blocks, each with LePE. Each half has num_heads // 2 heads, but at least
    one, whatever its share of the channels. A half that has all channels has all
    heads.

    Args:
        embed_dims (int): Channels C = c1 + c2.
        num_heads (int): Heads h.
        block_size (int): Tokens in a block of the local half, a square number.
            Queries, keys and values are zero-padded to whole blocks.
        split_ratio (float): Share c1 / C of the global half: 1 is efficient
            attention, 0 is attention inside blocks.
        lepe (bool): Adds a 3 x 3 depthwise convolution of the values, in the
            local half inside the blocks.
        mask_padding (bool): Masks padded tokens, which rules out kernels that
            take no mask (FlashAttention).
        qkv_bias (bool): Biases of the three projections.
        attn_scale (bool): Learns one AttnScale factor per head of each half.
            The mean is taken over all tokens in the global half, and over a
            block in the local half.
        init_cfg (dict, optional): Initialization of MMEngine.

    Raises:
        ValueError: If ``block_size`` is not a square number, or ``split_ratio`` is
            not in [0, 1] or does not give all heads of a half equally many
            channels; in ``forward`` if the map is empty or there are tokens
            besides the map's.
    """

    bound_to_map = True

    def __init__(
        self,
        embed_dims,
        num_heads,
        block_size=196,
        split_ratio=0.5,
        lepe=True,
        mask_padding=False,
        qkv_bias=True,
        attn_scale=False,
        init_cfg=None,
    ):
        super().__init__(embed_dims, num_heads, qkv_bias, init_cfg=init_cfg)
        side = F.square_side(block_size, 'block_size')
        self.block_size = block_size
        self.block_shape = (side, side)
        self.mask_padding = mask_padding
        self.half_dims, self.half_heads = self.divide(split_ratio)
        if attn_scale:
            self.omega = nn.Parameter(torch.zeros(sum(self.half_heads)))
        self.with_lepe = lepe
        self.global_lepe, self.local_lepe = (
            LePE(dims) if lepe and dims else None for dims in self.half_dims
        )

    def divide(self, split_ratio):
        """Channels and heads of the global and the local half."""
        if not 0 <= split_ratio <= 1:
            raise ValueError(f'split_ratio must be in [0, 1], got {split_ratio}')
        global_dims = round(split_ratio * self.embed_dims)
        dims = (global_dims, self.embed_dims - global_dims)
        if 0 in dims:
            heads = tuple(self.num_heads if half else 0 for half in dims)
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
    def dims_of_heads(self):
        return tuple(
            dims // heads
            for dims, heads in zip(self.half_dims, self.half_heads)
            for _ in range(heads)
        )

    def attend(self, q, k, v, hw_shape):
        omegas = (None, None)
        if self.omega is not None:
            omegas = self.omega.split(self.half_heads)
        attends = (self.attend_globally, self.attend_locally)
        halves = zip(
            attends,
            self.half_heads,
            omegas,
            *(x.split(self.half_dims, dim=-1) for x in (q, k, v)),
        )
        outs = [
            attend(*(self.split_heads(x, heads) for x in qkv), omega, hw_shape)
            for attend, heads, omega, *qkv in halves
            if heads
        ]
        return torch.cat(list(map(self.merge_heads, outs)), dim=-1)

    def attend_globally(self, q, k, v, omega, hw_shape):
        """(B, h1, N, d1) each to (B, h1, N, d1)."""
        out = F.efficient_attention(q, k, v)
        return out if omega is None else F.attn_scale(out, v, omega)

    def attend_locally(self, q, k, v, omega, hw_shape):
        """(B, h2, N, d2) each to (B, h2, N, d2)."""
        return F.block_attention(
            q,
            k,
            v,
            hw_shape,
            self.block_size,
            mask_padding=self.mask_padding,
            omega=omega,
        )

    def encode_positions(self, v, hw_shape):
        halves = zip(
            (self.global_lepe, self.local_lepe),
            v.split(self.half_dims, dim=-1),
            (None, self.block_shape),
        )
        return torch.cat(
            [lepe(x, hw_shape, block) for lepe, x, block in halves if lepe is not None],
            dim=-1,
        )

    def extra_repr(self):
        return (
            f'dims={self.half_dims}, heads={self.half_heads}, '
            f'block_size={self.block_size}'
        )
