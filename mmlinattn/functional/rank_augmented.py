"""Rank-augmented linear attention of RAVLT.

Legend: B batch, h heads, (H, W) map, N tokens, d head dim.
"""

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.nn.functional import elu, relu

from .precision import at_least_float32, autocast_disabled
from .rotary import rotary_linear_attention, rotate_both
from .tokens import products_with_one, softmax_over_tokens
from .tracing import is_exported, is_traced


def rank_augmented_attention(
    q: Tensor, k: Tensor, v: Tensor, hw_shape: Sequence[Any], steps: int
) -> Tensor:
    r"""Compute linear attention whose keys have weights, which raises the rank of their
    sum.

    With the features :math:`\phi = ELU + 1` of queries and keys, key j has the weight
    :math:`N \sigma_j(\bar Q K_j^T / \sqrt d)`, :math:`\bar Q` being the mean of all
    queries, so that weights are 1 on average (*Breaking the Low-Rank Dilemma of Linear
    Attention*, arXiv 2411.07635). Positions are rotary, the same in each head, and not
    in the normalizer. The paper's modulation of the output is the module's gate.

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
        q, k = elu_features(q), elu_features(k)
        mean = q.mean(-2, keepdim=True) * q.size(-1) ** -0.5
        k = k * (softmax_over_tokens(products_with_one(k, mean)) * k.size(-2))
        turned = rotate_both(q, k, hw_shape, steps)
        return rotary_linear_attention(q, k, v, *turned).to(dtype)


def elu_features(x: Tensor) -> Tensor:
    """Compute ELU + 1."""
    if is_traced() and not is_exported():
        # compilers take wrong strides of the gradient of an ELU (torch 2.15)
        return relu(x) + x.clamp(max=0).exp()
    return elu(x) + 1
