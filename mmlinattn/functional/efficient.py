"""Efficient attention: a softmax of queries and of keys, not of their products.

Legend: B batch, h heads, N tokens, c channels of queries and keys, d of values.
"""

from torch import Tensor

from .precision import at_least_float32, autocast_disabled
from .tokens import softmax_over_tokens, sum_over_tokens, to_every_token


def efficient_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    r"""Compute linear attention :math:`\sigma_c(Q) (\sigma_N(K)^T V)`.

    :math:`\sigma_c` is the softmax over the channels of each query,
    :math:`\sigma_N` that over the tokens of each channel, so each row of the
    N x N matrix :math:`\sigma_c(Q) \sigma_N(K)^T` sums to 1 (*Efficient
    Attention: Attention with Linear Complexities*, arXiv 1812.01243; the
    global half of *ELFATT*, arXiv 2501.06098).

    Args:
        q, k (Tensor): (B, h, N, c) each.
        v (Tensor): (B, h, N, d). In half precision the sums over the N tokens
            are taken in float32, with or without autocast: on a flat map each
            weight is 1 / N, which float16 can hardly represent.

    Returns:
        Tensor: (B, h, N, d), in the dtype of ``q``.
    """
    with autocast_disabled(q):
        k, v = at_least_float32(k, v)
        context = sum_over_tokens(softmax_over_tokens(k), v)  # (B, h, c, d)
        return to_every_token(q.softmax(-1), context.to(q.dtype))
