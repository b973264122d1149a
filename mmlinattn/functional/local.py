"""Softmax attention inside the blocks of a map.

Legend: B batch, h heads, (H, W) map, N = H * W tokens, n blocks of s * t
tokens, d head dim.
"""

import math
from typing import Optional

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from .blocks import Shape, Sides, blockify, unblockify
from .maps import unflatten
from .oversmoothing import attn_scale


def local_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    hw_shape: Shape,
    block_shape: Sides,
    mask_padding: bool = False,
    omega: Optional[Tensor] = None,
    dropout_p: float = 0.0,
    centered: bool = False,
) -> Tensor:
    """Compute softmax attention inside blocks.

    The fused kernels of :func:`torch.nn.functional.scaled_dot_product_attention`
    see the blocks as a batch.

    Args:
        q, k, v (Tensor): (B, h, N, d) each.
        hw_shape (tuple[int]): (H, W). The map is zero-padded to whole blocks.
        block_shape (tuple[int | None]): Sides (s, t) of a block; None is the map's.
        mask_padding (bool): Masks padded tokens. Otherwise they are zero keys
            with zero values, and FlashAttention, which takes no mask, stays
            possible.
        omega (Tensor, optional): AttnScale factors, (h, ). The mean is taken
            over the values of the block's keys.
        dropout_p (float): Dropout rate on attention weights.
        centered (bool): Pads all around instead of at the right and bottom only.

    Returns:
        Tensor: (B, h, N, d).
    """
    heads = q.shape[:2]
    q, k, v = [blockify(x, hw_shape, block_shape, centered) for x in (q, k, v)]
    mask = None
    if mask_padding:
        is_key = torch.ones(math.prod(hw_shape), 1, device=q.device)
        is_key = blockify(is_key, hw_shape, block_shape, centered)  # (n, s * t, 1)
        mask = is_key.transpose(-2, -1).bool().unsqueeze(0)
    # fused kernels take four axes: heads join the batch, blocks are the heads
    out = scaled_dot_product_attention(
        q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1), mask, dropout_p
    )
    out = unflatten(out, 0, heads)
    if omega is not None:
        if mask_padding:
            # padded values are zero: this makes the block's mean the keys' mean
            v = v / is_key.mean(-2, keepdim=True).to(v.dtype)
        out = attn_scale(out, v, omega)
    return unblockify(out, hw_shape, block_shape, centered)
