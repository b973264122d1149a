"""The attention of MLLA.

Legend: B batch, h heads, (H, W) map, N tokens, C = h * d channels.
"""

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.nn.functional import elu

from .maps import unflatten
from .precision import at_least_float32, autocast_disabled
from .rotary import ROTARY_EPS, rotary_linear_attention, rotate_both, turned_heads
from .tokens import products_with_one, sum_over_tokens, to_every_token


def mlla_attention(
    q: Tensor, k: Tensor, v: Tensor, hw_shape: Sequence[Any], num_heads: int
) -> Tensor:
    r"""Compute linear attention with the features ELU + 1 and rotary positions.

    As in the official code, all C channels are turned together, before heads are split
    off: the first half of the heads knows rows only, the second half columns only, and
    each has frequencies of its own (*Demystify Mamba in Vision: A Linear Attention
    Perspective*, arXiv 2405.16605).

    Args:
        q, k, v (Tensor): (B, N, C) each, C even. Half precision is computed in float32,
            with or without autocast.
        hw_shape (Sequence[int]): (H, W). Extra tokens come first.
        num_heads (int): h.

    Returns:
        Tensor: (B, h, N, d), in the dtype of ``v``.
    """
    dtype, steps = v.dtype, q.size(-1) // 4
    with autocast_disabled(q):
        q, k, v = at_least_float32(q, k, v)
        q, k = elu(q) + 1, elu(k) + 1
        heads = [
            unflatten(x, -1, (num_heads, -1)).transpose(1, 2)
            for x in (q, k, v, *rotate_both(q, k, hw_shape, steps))
        ]
        return rotary_linear_attention(*heads).to(dtype)


def add_mlla_attention(
    positions: Tensor, qk: Tensor, v: Tensor, hw_shape: Sequence[Any], num_heads: int
) -> Tensor:
    """Compute ``positions + mlla_attention(q, k, v)`` with fewer operators: queries and
    keys take each step together.

    Args:
        positions (Tensor): (B, N, C).
        qk (Tensor): Queries and keys, (B, N, 2 C).
        v, hw_shape, num_heads: See :func:`mlla_attention`.

    Returns:
        Tensor: (B, N, C), in the dtype of ``v``.
    """
    dtype = v.dtype
    with autocast_disabled(qk):
        positions, qk, v = at_least_float32(positions, qk, v)
        features = elu(qk).add_(1)  # ELU keeps its input, not this
        q, k = turned_heads(features, hw_shape, num_heads)
        positions, v = [unflatten(x, -1, (num_heads, -1)) for x in (positions, v)]
        out = to_every_token(q, sum_over_tokens(k, v.transpose(1, 2))).transpose(1, 2)
        q, k = unflatten(features, -1, (2 * num_heads, -1)).chunk(2, 2)
        sums = products_with_one(q, k.sum(1, keepdim=True)) + ROTARY_EPS * k.size(1)
        return positions.addcdiv(out, sums).flatten(2).to(dtype)
