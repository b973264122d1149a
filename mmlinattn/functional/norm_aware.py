"""Norm-aware linear attention of NaLaFormer.

Legend: B batch, h heads, (H, W) map, N tokens, d head dim.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from .precision import at_least_float32, autocast_disabled
from .rotary import rotary_linear_attention, rotate_both

# from the official code: the power of keys, and those of queries, 1.5 to 4.5
_KEY_POWER = 3
_LEAST, _RANGE = 1.5, 3.0


def norm_aware_attention(
    q: Tensor, k: Tensor, v: Tensor, hw_shape: Sequence[Any], steps: int
) -> Tensor:
    r"""Compute linear attention whose rows are the more peaked, the longer their query
    is.

    With :math:`x^\pm = ReLU(\pm x)`, the features of a query are its direction to a
    power that grows with its length, and those of a key its third power:

    .. math::
        \phi(Q_i) = \left[\left(\frac{Q_i^\pm}{\|Q_i\|}\right)^{3 (0.5 + \tanh
        \|Q_i\|)}\right],\quad \phi(K_j) = \left[(K_j^\pm)^3\right],\quad O_i =
        \frac{R(\phi(Q_i)) \sum_j R(\phi(K_j))^T V_j}{\phi(Q_i) \sum_j \phi(K_j)^T +
        10^{-6} N}

    (*Norm x Direction: Restoring the Missing Query Norm in Vision Linear Attention*,
    arXiv 2506.21137, as its official code computes it). R rotates both halves of the
    2 d features by a token's place on the map, not those of the denominator, so a row
    of weights need not sum to 1.

    Args:
        q, k, v (Tensor): (B, h, N, d) each, d even. Half precision is computed in
            float32, with or without autocast.
        hw_shape (Sequence[int]): (H, W). Extra tokens come first.
        steps (int): See :func:`rotate`.

    Returns:
        Tensor: (B, h, N, d), in the dtype of ``v``.
    """
    dtype = v.dtype
    with autocast_disabled(q):
        q, k, v = at_least_float32(q, k, v)
        power = _LEAST + _RANGE * q.norm(dim=-1, keepdim=True).tanh()
        q = _power_of_positive(_both_signs(normalize(q, dim=-1)), power.unsqueeze(-3))
        k = _both_signs(k).relu() ** _KEY_POWER
        q, k, turned_q, turned_k = map(
            _side_by_side, (q, k, *rotate_both(q, k, hw_shape, steps))
        )
        return rotary_linear_attention(q, k, v, turned_q, turned_k).to(dtype)


def _both_signs(x: Tensor) -> Tensor:
    """x and -x of (B, h, N, d): (B, h, 2, N, d)."""
    return torch.stack((x, -x), -3)


def _power_of_positive(x: Tensor, power: Tensor) -> Tensor:
    """Return a power of positive entries, and 0 for others, whose derivatives are then
    0."""
    is_positive = x > 0
    powers = torch.where(is_positive, x, torch.ones_like(x)) ** power
    return torch.where(is_positive, powers, torch.zeros_like(x))


def _side_by_side(x: Tensor) -> Tensor:
    """(B, h, 2, N, d) as (B, h, N, 2d)."""
    return x.transpose(-3, -2).flatten(-2)
