"""InLine attention: linear attention normalized by a subtraction, not a division.

Legend: B batch, h heads, N tokens, d head dim.
"""

from torch import Tensor

from .precision import at_least_float32, autocast_disabled
from .tokens import sum_over_tokens, to_every_token


def inline_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    r"""Compute linear attention whose weights sum to one without a division.

    :math:`A_{ij} = \frac{1}{N \sqrt d}(Q_i K_j^T - \frac{1}{N} \sum_s Q_i K_s^T) +
    \frac{1}{N}` (*Bridging the Divide: Reconsidering Softmax and Linear Attention*,
    arXiv 2412.06590), with the identity as feature map. Weights may be negative.
    Keys are centered first, so that :math:`A V = Q (\bar K^T V) / (N \sqrt d) +
    mean(V)`.

    Args:
        q, k, v (Tensor): (B, h, N, d) each. Half precision is computed in float32,
            with or without autocast.

    Returns:
        Tensor: (B, h, N, d), in the dtype of ``v``.
    """
    dtype = v.dtype
    with autocast_disabled(q):
        q, k, v = at_least_float32(q, k, v)
        k = (k - k.mean(-2, keepdim=True)) / (k.size(-2) * k.size(-1) ** 0.5)
        out = to_every_token(q, sum_over_tokens(k, v))
        return (out + v.mean(-2, keepdim=True)).to(dtype)
