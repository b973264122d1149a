"""AttnScale and FeatScale (*Anti-Oversmoothing in Deep Vision Transformers
via the Fourier Domain Analysis*, arXiv 2203.05962).

Legend: B batch, h heads, N tokens, d head dim, C channels.
"""

import torch
from torch import Tensor


def attn_scale(out: Tensor, v: Tensor, omega: Tensor) -> Tensor:
    r"""Amplify the high-pass part of an attention matrix (AttnScale).

    The paper's :math:`\hat A = L + (1 + \omega)(A - L)` with :math:`L = 11^T
    / N` gives :math:`\hat A V = (1 + \omega) A V - \omega\,mean(V)`,
    which does not need the attention matrix itself.

    Args:
        out (Tensor): Attention output A V, (B, h, ..., N, d). The dots are
            windows of N tokens each, if there are windows.
        v (Tensor): Values, of the same shape.
        omega (Tensor): Scale per head, (h, ); 0 is the identity.

    Returns:
        Tensor: The shape of ``out``.
    """
    omega = omega.view(-1, *(1,) * (out.dim() - 2))
    # one pass over the output: mean(V) * -omega + A V * (1 + omega)
    return torch.addcmul(v.mean(-2, keepdim=True) * -omega, out, 1 + omega)


def dc_component(x: Tensor) -> Tensor:
    """Return the zero-frequency part of a token sequence: its mean over tokens.

    Args:
        x (Tensor): (B, N, C).

    Returns:
        Tensor: (B, 1, C).
    """
    return x.mean(-2, keepdim=True)


def feat_scale(x: Tensor, dc_scale: Tensor, hc_scale: Tensor) -> Tensor:
    r"""Weight the frequency bands of a feature map (FeatScale).

    :math:`(1 + s) DC[X] + (1 + t) HC[X]` with :math:`HC[X] = X - DC[X]`.

    Args:
        x (Tensor): (B, N, C).
        dc_scale (Tensor): s, (C, ); 0 keeps the band.
        hc_scale (Tensor): t, (C, ), likewise.

    Returns:
        Tensor: (B, N, C).
    """
    # one pass over the map: DC * (s - t) + X * (1 + t)
    return torch.addcmul(dc_component(x) * (dc_scale - hc_scale), x, 1 + hc_scale)
