"""Effect of an attention matrix on frequencies (*Anti-Oversmoothing in Deep Vision
Transformers via the Fourier Domain Analysis*, arXiv 2203.05962).

Frequencies are those of the token sequence in raster order, the zero frequency first.

Legend: ... batch and heads, N tokens.
"""

import torch
from torch import Tensor


def attention_spectrum(attn: Tensor) -> Tensor:
    r"""Attention matrix in the Fourier basis.

    .. math:: \Lambda = F A F^{-1}, \quad
        F_{kn} = e^{-2 \pi i k n / N} / \sqrt{N}

    :math:`|\Lambda_{kl}|` is how much of a signal with frequency l leaves with
    frequency k. A circulant A has a diagonal one: the discrete Fourier transform of
    its first column.

    Args:
        attn (Tensor): Attention matrices, (..., N, N), real.

    Returns:
        Tensor: Magnitudes, (..., N, N).
    """
    rows = torch.fft.ifft(attn, dim=-1, norm='ortho')
    return torch.fft.fft(rows, dim=-2, norm='ortho').abs()


def frequency_gain(attn: Tensor, columns: bool = False) -> Tensor:
    r"""Response of each frequency band, the norm of its row in the spectrum.

    .. math:: \Big(\sum_l |\Lambda_{kl}|^2\Big)^{1/2} = \|f_k^* A\|_2

    with :math:`\Lambda` of :func:`attention_spectrum` and the unit wave :math:`f_k`,
    column k of :math:`F^{-1}`: how much leaves with frequency k (arXiv 2203.05962,
    Appendix F.2). The norm of a column, :math:`\|A f_k\|_2`, is how much becomes of
    what enters with it.

    Args:
        attn (Tensor): Attention matrices, (..., N, N), real.
        columns (bool): Returns the norms of columns.

    Returns:
        Tensor: (..., N). As A is real, frequencies k and N - k have the same gain.
    """
    axis = -1 if columns else -2
    # the transform at the other side is unitary, and keeps norms
    return torch.fft.fft(attn, dim=axis, norm='ortho').norm(dim=-3 - axis)
