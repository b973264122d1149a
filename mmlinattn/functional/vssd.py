"""Non-causal state space duality, the attention of VSSD.

Legend: B batch, h heads, N tokens, n channels of queries and keys, C = h * d channels.
"""

from torch import Tensor

from .maps import unflatten
from .precision import at_least_float32, autocast_disabled
from .tokens import sum_over_tokens, to_every_token


def non_causal_ssd(
    q: Tensor, k: Tensor, v: Tensor, weights: Tensor, skip: Tensor
) -> Tensor:
    r"""Compute linear attention whose heads share queries and keys.

    A head has a weight w of each token, and a factor D of its own values:
    :math:`Q (K^T (w \odot V)) + D V`. Nothing divides the sum over tokens (*VSSD:
    Vision Mamba with Non-Causal State Space Duality*, arXiv 2407.18559, where Q, K and
    V are C, B and X, and w is :math:`\Delta \exp(A_{log})` in the official code).

    Args:
        q, k (Tensor): (B, N, n) each. Half precision is computed in float32, with or
            without autocast.
        v (Tensor): (B, N, C).
        weights (Tensor): w, (B, N, h).
        skip (Tensor): D, (h, ).

    Returns:
        Tensor: (B, N, C), in float32 for half precision, which cannot hold the sums.
    """
    with autocast_disabled(q):
        q, k, v, weights, skip = at_least_float32(q, k, v, weights, skip)
        heads = unflatten(v, -1, (weights.size(-1), -1))
        weighted = (heads * weights.unsqueeze(-1)).flatten(2)
        # one product serves all heads
        out = to_every_token(q, sum_over_tokens(k, weighted)).view_as(heads)
        return out.addcmul(heads, skip.unsqueeze(-1)).flatten(2)
