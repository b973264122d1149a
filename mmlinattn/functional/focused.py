"""Focused linear attention of FLatten Transformer.

Legend: B batch, h heads, N tokens, d head dim.
"""

from typing import Optional

import torch
from torch import Tensor

from .precision import at_least_float32, autocast_disabled
from .tokens import sum_over_tokens, to_every_token

# from the official code: gives a direction to a token without positive channels, and
# keeps the normalizer of a head without any above 0
_EPS = 1e-6


def focus(
    x: Tensor,
    factor: float = 3,
    scale: Optional[Tensor] = None,
    axes: tuple[int, ...] = (-1,),
) -> Tensor:
    r"""Draw vectors to their largest axes and keep their lengths.

    :math:`\phi_p(x) = f_p(ReLU(x))`,
    :math:`f_p(x) = \frac{\|x\|}{\|x^{**p}\|} x^{**p}` (*FLatten Transformer:
    Vision Transformer using Focused Linear Attention*, arXiv 2308.00442).

    Args:
        x (Tensor): (..., d), float32 or more.
        factor (float): p.
        scale (Tensor, optional): Positive, broadcast to x: the divisor of ReLU(x),
            as in the official code.
        axes (tuple[int]): Axes of x that make up a vector.

    Returns:
        Tensor: As x, nonnegative.
    """
    x = x.relu() + _EPS
    if scale is not None:
        x = x / scale
    # f_p(x) is invariant to this, but powers of large numbers overflow
    power = (x / x.detach().amax(axes, keepdim=True)) ** factor
    length = torch.linalg.vector_norm(x, dim=axes, keepdim=True)
    return power * (length / torch.linalg.vector_norm(power, dim=axes, keepdim=True))


def focused_linear_attention(
    q: Tensor, k: Tensor, v: Tensor, factor: float = 3, scale: Optional[Tensor] = None
) -> Tensor:
    r"""Compute linear attention with the feature map :func:`focus`.

    :math:`\phi_p(Q) (\phi_p(K)^T V)`, each row divided by
    :math:`\phi_p(Q_i) \sum_j \phi_p(K_j)^T`. As in the official code, a token is
    focused once, in all its heads together, so that its length is that of h * d
    channels, and 1e-6 N is added to the divisor.

    Args:
        q, k, v (Tensor): (B, h, N, d) each. Half precision is computed in float32,
            with or without autocast.
        factor (float): p.
        scale (Tensor, optional): (h, 1, d), positive. See :func:`focus`.

    Returns:
        Tensor: (B, h, N, d), in the dtype of ``v``.
    """
    dtype = v.dtype
    with autocast_disabled(q):
        q, k, v = at_least_float32(q, k, v)
        if scale is not None:
            scale = scale.to(q.dtype)
        q, k = focus(q, factor, scale, (1, 3)), focus(k, factor, scale, (1, 3))
        k = k / k.size(-2)
        normalizer = to_every_token(q, k.sum(-2).unsqueeze(-1))  # (B, h, N, 1)
        out = to_every_token(q, sum_over_tokens(k, v)) / (normalizer + _EPS)
        return out.to(dtype)
