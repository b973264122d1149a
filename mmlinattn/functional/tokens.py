"""Sums over tokens, which a GPU takes in parts.

A GPU gives each entry of a product to one group of threads, and each number that a
softmax along the second to last axis divides by to one thread. Sums over tokens have
few entries and many terms, so most of the GPU would wait, up to 30 times as long (torch
2.11, H100, 67,200 tokens).

Legend: ... batch and heads, N tokens, p parts, n queries, c and d channels.
"""

from typing import Optional

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from .maps import unflatten
from .precision import at_least_float32, autocast_disabled
from .tracing import is_exported, is_traced

_TOKENS = 512  # of a part, at least
_FEW = 128  # queries; for more, softmax attention fills a GPU


def sum_over_tokens(x: Tensor, y: Tensor) -> Tensor:
    """Compute ``x^T y``.

    Args:
        x (Tensor): (..., N, c).
        y (Tensor): (..., N, d).

    Returns:
        Tensor: (..., c, d).
    """
    if _comes_whole(x):
        return _matmul(x.transpose(-2, -1), y)
    return (_in_parts(x).transpose(-2, -1) @ _in_parts(y)).sum(-3)


def to_every_token(x: Tensor, y: Tensor) -> Tensor:
    """Compute ``x y``; the gradient of y is a sum over tokens.

    Args:
        x (Tensor): (..., N, c).
        y (Tensor): (..., c, d).

    Returns:
        Tensor: (..., N, d).
    """
    if _comes_whole(x):
        return _matmul(x, y)
    return (_in_parts(x) @ y.unsqueeze(-3)).flatten(-3, -2)


def products_with_one(x: Tensor, y: Tensor) -> Tensor:
    """Return inner products of all tokens (..., N, c) with one, (..., 1, c): (..., N,
    1). As a matrix product, this would take copies of heads and more operators."""
    return (x * y).sum(-1, keepdim=True)


def softmax_over_tokens(x: Tensor) -> Tensor:
    """Return the softmax of (..., N, c) along N."""
    if _comes_whole(x):
        return x.softmax(-2)
    return x.transpose(-2, -1).softmax(-1).transpose(-2, -1)


def few_to_tokens_attention(
    q: Tensor, k: Tensor, v: Tensor, bias: Optional[Tensor] = None
) -> Tensor:
    """Compute softmax attention of few queries to all tokens.

    Args:
        q (Tensor): (..., n, c).
        k (Tensor): (..., N, c).
        v (Tensor): (..., N, d).
        bias (Tensor, optional): Added to the logits, broadcast to (..., n, N).

    Returns:
        Tensor: (..., n, d).
    """
    if _comes_whole(k) or q.size(-2) > _FEW:
        return scaled_dot_product_attention(q, k, v, attn_mask=bias)
    dtype = v.dtype
    with autocast_disabled(q):
        q, k, v = at_least_float32(q, k, v)
        logits = to_every_token(k, (q * q.size(-1) ** -0.5).transpose(-2, -1))
        if bias is not None:
            logits = logits + bias.transpose(-2, -1)
        return sum_over_tokens(softmax_over_tokens(logits), v).to(dtype)


def _matmul(x: Tensor, y: Tensor) -> Tensor:
    """Return ``x @ y``, with half of the views that ``@`` makes."""
    if is_traced() or x.shape[:-2] != y.shape[:-2]:
        return x @ y
    if x.dim() == 3:
        return torch.bmm(x, y)
    out = torch.bmm(x.flatten(0, -3), y.flatten(0, -3))
    return unflatten(out, 0, x.shape[:-2])


def _comes_whole(x: Tensor) -> bool:
    return is_exported() or not x.is_cuda


def _in_parts(x: Tensor) -> Tensor:
    """(..., N, c) to (..., p, N / p, c). p depends on nothing but N."""
    num_tokens = x.size(-2)
    parts = max(1, num_tokens // _TOKENS)
    while num_tokens % parts:
        parts -= 1
    return x.unflatten(-2, (parts, num_tokens // parts))
