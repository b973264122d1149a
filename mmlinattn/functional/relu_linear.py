"""ReLU linear attention of EfficientViT.

Legend: B batch, h heads, N tokens, d head dim.
"""

from torch import Tensor
from torch.nn.functional import pad

from .precision import at_least_float32, autocast_disabled
from .tokens import sum_over_tokens, to_every_token

# from the official code: the divisor of a query without positive channels is 0
_EPS = 1e-15


def relu_linear_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    r"""Compute linear attention with ReLU as its feature map.

    :math:`ReLU(Q) (ReLU(K)^T V)`, each row divided by :math:`ReLU(Q_i) \sum_j
    ReLU(K_j)^T` (*EfficientViT: Multi-Scale Linear Attention for High-Resolution Dense
    Prediction*, arXiv 2205.14756). A column of ones beside the values makes the
    divisor. As in the official code, 1e-15 is added to it. The official code multiplies
    queries and keys first if a map has few tokens, with the same result.

    Args:
        q, k, v (Tensor): (B, h, N, d) each. Half precision is computed in float32,
            with or without autocast.

    Returns:
        Tensor: (B, h, N, d), in the dtype of ``v``.
    """
    dtype = v.dtype
    with autocast_disabled(q):
        q, k, v = at_least_float32(q.relu(), k.relu(), v)
        out = to_every_token(q, sum_over_tokens(k, pad(v, (0, 1), value=1.0)))
        return (out[..., :-1] / (out[..., -1:] + _EPS)).to(dtype)
