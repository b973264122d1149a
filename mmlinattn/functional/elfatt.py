"""ELFATT: a global and a local attention side by side.

Legend: B batch, (H, W) map, N = H * W tokens, C channels, of which the global half has
c1 in h1 heads and the local half c2 in h2 heads.
"""

from typing import Optional

import torch
from torch import Tensor

from .blocks import Shape, square_side
from .efficient import efficient_attention
from .local import local_attention
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
    """Compute efficient attention of the first channels, and softmax attention inside
    square blocks of the others (*ELFATT: Efficient Linear Fast Attention for Vision
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
    side = square_side(block_size, 'block_size')
    first, second = zip(*(x.split(dims, -1) for x in (q, k, v)))
    omega1, omega2 = (None, None) if omega is None else omega.split(heads)
    outs = []
    if heads[0]:
        q, k, v = [unflatten(x, -1, (heads[0], -1)).transpose(1, 2) for x in first]
        out = efficient_attention(q, k, v)
        outs.append(out if omega1 is None else attn_scale(out, v, omega1))
    if heads[1]:
        q, k, v = [unflatten(x, -1, (heads[1], -1)).transpose(1, 2) for x in second]
        out = local_attention(q, k, v, hw_shape, (side, side), mask_padding, omega2)
        outs.append(out)
    return torch.cat([x.transpose(1, 2).flatten(2) for x in outs], -1)
