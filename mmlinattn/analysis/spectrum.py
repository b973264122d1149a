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

    Raises:
        ValueError: If the matrices are not square.
    """
    _check(attn)
    rows = torch.fft.ifft(attn, dim=-1, norm='ortho')
    return torch.fft.fft(rows, dim=-2, norm='ortho').abs()


def frequency_gain(attn: Tensor) -> Tensor:
    r"""Amplification of each frequency, whatever it becomes.

    .. math:: \|A f_l\|_2 = \Big(\sum_k |\Lambda_{kl}|^2\Big)^{1/2}

    with the unit wave :math:`f_l` of frequency l, column l of :math:`F^{-1}`, and
    :math:`\Lambda` of :func:`attention_spectrum`.

    Args:
        attn (Tensor): Attention matrices, (..., N, N), real.

    Returns:
        Tensor: (..., N). As A is real, frequencies l and N - l have the same gain.

    Raises:
        ValueError: If the matrices are not square.
    """
    _check(attn)
    return torch.fft.ifft(attn, dim=-1, norm='ortho').norm(dim=-2)


def _check(attn: Tensor) -> None:
    if attn.dim() < 2 or attn.size(-1) != attn.size(-2):
        raise ValueError(f'attn must be (..., N, N), got {tuple(attn.shape)}')
