"""ELFATT: a global and a local attention side by side.

Legend: B batch, (H, W) map, N = H * W tokens, C channels, of which the global half has
c1 in h1 heads and the local half c2 in h2 heads.
"""

from typing import Optional

import torch
from torch import Tensor

from .blocks import Shape
from .efficient import efficient_attention
from .local import block_attention
from .maps import unflatten
from .oversmoothing import attn_scale


def elfatt_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    hw_shape: Shape,
    block_size: int,
    dims: tuple[int, int],
    heads: tuple[int, int],
    mask_padding: bool = False,
    omega: Optional[Tensor] = None,
) -> Tensor:
    """Efficient attention of the first channels, and softmax attention inside square
    blocks of the others (*ELFATT: Efficient Linear Fast Attention for Vision
    Transformers*, arXiv 2501.06098).

    Args:
        q, k, v (Tensor): (B, N, C) each.
        hw_shape (tuple[int]): (H, W).
        block_size (int): Tokens in a block, a square number.
        dims (tuple[int]): (c1, c2); a half may be empty.
        heads (tuple[int]): (h1, h2), divisors of c1 and c2.
        mask_padding (bool): See :func:`local_attention`.
        omega (Tensor, optional): AttnScale factors, (h1 + h2, ).

    Returns:
        Tensor: (B, N, C).

    Raises:
        ValueError: If ``block_size`` is not a square number.
    """
    (q1, q2), (k1, k2), (v1, v2) = [x.split(dims, -1) for x in (q, k, v)]
    omega1, omega2 = (None, None) if omega is None else omega.split(heads)
    outs = []
    if heads[0]:
        q1, k1, v1 = [_split(x, heads[0]) for x in (q1, k1, v1)]
        out = efficient_attention(q1, k1, v1)
        outs.append(out if omega1 is None else attn_scale(out, v1, omega1))
    if heads[1]:
        q2, k2, v2 = [_split(x, heads[1]) for x in (q2, k2, v2)]
        outs.append(
            block_attention(q2, k2, v2, hw_shape, block_size, mask_padding, omega2)
        )
    return torch.cat([x.transpose(1, 2).flatten(2) for x in outs], -1)


def _split(x: Tensor, heads: int) -> Tensor:
    """(B, N, C) as (B, h, N, d)."""
    return unflatten(x, -1, (heads, -1)).transpose(1, 2)
