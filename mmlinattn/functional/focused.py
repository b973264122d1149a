"""Focused linear attention of FLatten Transformer.

Legend: B batch, h heads, N tokens, d head dim.
"""

from torch import Tensor

from .precision import at_least_float32, autocast_disabled

# gives a token without positive channels a direction
_EPS = 1e-6


def focus(x: Tensor, factor: float = 3) -> Tensor:
    r"""Draws vectors to their largest axes and keeps their lengths.

    :math:`\phi_p(x) = f_p(ReLU(x))`,
    :math:`f_p(x) = \frac{\|x\|}{\|x^{**p}\|} x^{**p}` (*FLatten Transformer:
    Vision Transformer using Focused Linear Attention*, arXiv 2308.00442).

    Args:
        x (Tensor): (..., d), float32 or more.
        factor (float): p.

    Returns:
        Tensor: (..., d), nonnegative.
    """
    x = x.relu() + _EPS
    # f_p(x) is invariant to this, but powers of large numbers overflow
    power = (x / x.detach().amax(-1, keepdim=True)) ** factor
    return power * (x.norm(dim=-1, keepdim=True) / power.norm(dim=-1, keepdim=True))


def focused_linear_attention(
    q: Tensor, k: Tensor, v: Tensor, factor: float = 3
) -> Tensor:
    r"""Linear attention with the feature map :func:`focus`.

    :math:`\phi_p(Q) (\phi_p(K)^T V)`, each row divided by
    :math:`\phi_p(Q_i) \sum_j \phi_p(K_j)^T`.

    Args:
        q (Tensor): (B, h, N, d).
        k (Tensor): (B, h, N, d).
        v (Tensor): (B, h, N, d). Half precision is computed in float32,
            with or without autocast.
        factor (float): p.

    Returns:
        Tensor: (B, h, N, d), in the dtype of ``v``.
    """
    dtype = v.dtype
    with autocast_disabled(q):
        q, k, v = at_least_float32(q, k, v)
        q, k = focus(q, factor), focus(k, factor)
        normalizer = q @ k.sum(-2, keepdim=True).mT  # (B, h, N, 1)
        return (q @ (k.mT @ v) / normalizer).to(dtype)
