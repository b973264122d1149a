"""Polarity-aware linear attention of PolaFormer.

Legend: B batch, h heads, N tokens, d head dim.
"""

from typing import Optional

import torch
from torch import Tensor

from .precision import at_least_float32, autocast_disabled
from .tokens import sum_over_tokens, to_every_token

# from the official code: a query that shares no sign with a key has the normalizer 0
_EPS = 1e-6


def polarity_aware_attention(
    q: Tensor, k: Tensor, v: Tensor, power: Tensor, scale: Optional[Tensor] = None
) -> Tensor:
    r"""Compute linear attention that keeps the signs of queries and keys apart.

    With :math:`x^\pm = ReLU(\pm x)^p`, the first half of a head's values is weighted
    by the products of equal signs, :math:`Q_i^+ {K_j^+}^T + Q_i^- {K_j^-}^T`, the
    second half by those of opposite signs, :math:`Q_i^- {K_j^+}^T + Q_i^+ {K_j^-}^T`,
    each divided by its sum over j (*PolaFormer: Polarity-aware Linear Attention for
    Vision Transformers*, arXiv 2501.15061). As in the official code, 1e-6 N is added
    to the divisor.

    Args:
        q, k, v (Tensor): (B, h, N, d) each, d even. Half precision is computed in
            float32, with or without autocast.
        power (Tensor): p, at least 1, (h, 1, d).
        scale (Tensor, optional): Positive, (h, 1, d): the divisor of q and k,
            as in the official code.

    Returns:
        Tensor: (B, h, N, d), in the dtype of ``v``.
    """
    dtype = v.dtype
    with autocast_disabled(q):
        q, k, v, power = at_least_float32(q, k, v, power)
        if scale is not None:
            q, k = q / scale.to(q.dtype), k / scale.to(q.dtype)
        q, k = _signed_powers(q, power), _signed_powers(k, power)
        means = k.mean(-2).unsqueeze(-1)  # (B, h, 2d, 1)
        k = k / k.size(-2)
        # (B, h, 2d, d / 2)
        same, opposite = [sum_over_tokens(k, x) for x in v.chunk(2, -1)]
        outs = [
            to_every_token(q, x) / (to_every_token(q, mean) + _EPS)
            for x, mean in ((same, means), (_swap(opposite), _swap(means)))
        ]
        return torch.cat(outs, -1).to(dtype)


def _signed_powers(x: Tensor, power: Tensor) -> Tensor:
    """Positive and negative part of x (B, h, N, d), to a power: (B, h, N, 2d)."""
    powers = x.abs() ** power
    return torch.cat((powers * (x > 0), powers * (x < 0)), -1)


def _swap(x: Tensor) -> Tensor:
    """Swap the features of both signs, (B, h, 2d, n)."""
    positive, negative = x.chunk(2, -2)
    return torch.cat((negative, positive), -2)
