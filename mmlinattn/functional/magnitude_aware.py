"""Magnitude-aware linear attention of MAViT.

Legend: B batch, h heads, (H, W) map, N tokens, d head dim.
"""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from .precision import at_least_float32, autocast_disabled
from .rank_augmented import elu_features
from .rotary import ROTARY_EPS, rotate_both
from .tokens import products_with_one, sum_over_tokens, to_every_token


def magnitude_aware_attention(
    q: Tensor, k: Tensor, v: Tensor, hw_shape: Sequence[Any], steps: int
) -> Tensor:
    r"""Compute linear attention whose weights depend on the length of a query.

    With the features :math:`\phi = ELU + 1` and :math:`s_{ij} = \phi(Q_i) \phi(K_j)^T /
    (N \sqrt d)`, weights are :math:`\beta_i s_{ij} - \gamma_i` with :math:`\beta_i = 1
    + 1 / \sum_m s_{im}` and :math:`\gamma_i = \sum_m s_{im} / N`, and sum to 1
    (*Rectifying Magnitude Neglect in Linear Attention*, arXiv 2507.00698). As in the
    official code, queries and keys of the product are rotated, the same in each head,
    but not those of :math:`\beta` and :math:`\gamma`; :math:`10^{-6}` is added to the
    denominator. Weights may be negative.

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
        q, k = elu_features(q), elu_features(k) * q.size(-1) ** -0.5
        sums = products_with_one(q, k.mean(-2, keepdim=True))  # (B, h, N, 1)
        turned_q, turned_k = rotate_both(q, k, hw_shape, steps)
        context = sum_over_tokens(turned_k, v) / k.size(-2)
        out = to_every_token(turned_q, context) * (1 + 1 / (sums + ROTARY_EPS))
        return (out - sums * v.mean(-2, keepdim=True)).to(dtype)
