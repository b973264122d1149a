"""FAVOR+ of Performer: softmax attention by positive random features.

Legend: B batch, h heads, N tokens, m features, d head dim.
"""

import math

import torch
from torch import Tensor
from torch.nn.init import orthogonal_

from .efficient import efficient_attention
from .precision import at_least_float32, autocast_disabled


def orthogonal_features(num_features: int, head_dims: int) -> Tensor:
    """Random Gaussian vectors, orthogonal in groups of d.

    Args:
        num_features (int): m.
        head_dims (int): d.

    Returns:
        Tensor: (m, d), each row distributed as a standard normal vector.
    """
    groups = [
        orthogonal_(torch.empty(head_dims, head_dims))
        for _ in range(math.ceil(num_features / head_dims))
    ]
    lengths = torch.randn(num_features, head_dims).norm(dim=1, keepdim=True)
    return lengths * torch.cat(groups)[:num_features]


def performer_attention(q: Tensor, k: Tensor, v: Tensor, features: Tensor) -> Tensor:
    r"""Compute softmax attention with its kernel estimated from random features.

    :math:`\phi(Q) (\phi(K)^T V)`, each row divided by :math:`\phi(Q_i)
    \sum_j \phi(K_j)^T`, with the positive features :math:`\phi(x) =
    \exp(-\|x\|^2 / 2)\,\exp(\Omega x) / \sqrt m` of queries and keys divided
    by :math:`d^{1/4}` (*Rethinking Attention with Performers*, arXiv
    2009.14794).

    With the normalization written out, this is efficient attention on the
    logarithms of the features. Those of the queries are shifted by the logarithm
    of :math:`\sum_j \phi(K_j)`. Nothing can overflow, no divisor can vanish, and
    the length of a query cancels.

    Args:
        q, k, v (Tensor): (B, h, N, d) each. Half precision is computed in float32,
            with or without autocast.
        features (Tensor): Omega, (m, d).

    Returns:
        Tensor: (B, h, N, d), in the dtype of ``v``.
    """
    dtype = v.dtype
    with autocast_disabled(q):
        q, k, v, features = at_least_float32(q, k, v, features)
        features = features.transpose(-2, -1) * q.size(-1) ** -0.25
        half_square = k.square().sum(-1, keepdim=True) / (2 * k.size(-1) ** 0.5)
        log_k = k @ features - half_square  # (B, h, N, m)
        log_q = q @ features + log_k.logsumexp(-2, keepdim=True)
        return efficient_attention(log_q, log_k, v).to(dtype)
