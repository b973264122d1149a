r"""Bounds on the high frequencies that attention and FFNs leave (*Anti-Oversmoothing in
Deep Vision Transformers via the Fourier Domain Analysis*, arXiv 2203.05962).

With :math:`L = 1 1^T / N`, :math:`HC[X] = (I - L) X` is X without its mean token, and

.. math:: HC[A X] = (I - L) A (I - L)\, HC[X] + HC[A 1]\, \bar x^T

with the mean token :math:`\bar x`. Rows of softmax attention sum to 1, so that
:math:`HC[A 1] = 0`: the mean does not feed high frequencies. The paper's propositions
are derived here in this form, which holds for any attention matrix.

Legend: ... batch and more, h heads, N queries, M keys, C channels, D
hidden ones.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from .pseudo_inverse import spectral_norm


def high_frequencies(x: Tensor) -> Tensor:
    r"""HC[X], tokens without their mean token, (..., N, C) to (..., N, C)."""
    return x - x.mean(-2, keepdim=True)


def smoothing_rate(attn: Tensor) -> Tensor:
    r"""Largest factor of high frequencies, :math:`\|(I - L) A (I - L)\|_2`.

    If the rows of A sum to one number, no smaller one has
    :math:`\|HC[A X]\|_F \le \gamma \|HC[X]\|_F` for all X.

    Args:
        attn (Tensor): Attention matrices, (..., N, M).

    Returns:
        Tensor: (...).
    """
    return _norm(high_frequencies(high_frequencies(attn).mT))


def mean_leakage(attn: Tensor) -> Tensor:
    r"""Factor from the mean token to high frequencies, :math:`\|HC[A 1]\| / \sqrt M`.

    .. math:: \|HC[A X]\|_F \le \gamma \|HC[X]\|_F + \lambda \|DC[X]\|_F

    with this factor :math:`\lambda` and the :func:`smoothing_rate` :math:`\gamma`.

    Args:
        attn (Tensor): Attention matrices, (..., N, M).

    Returns:
        Tensor: (...), 0 if the rows of A sum to one number.
    """
    sums = attn.sum(-1, keepdim=True)
    return high_frequencies(sums).norm(dim=(-2, -1)) / attn.size(-1) ** 0.5


def softmax_bound(attn: Tensor) -> Tensor:
    r"""Bound on :func:`smoothing_rate` by the logits of softmax (Theorem 3).

    .. math:: \sqrt{N e^{2 \alpha} / (e^{2 \alpha} + M - 1)}

    where the logits of each row are in an interval of length :math:`2 \alpha`. The
    weights say how long it is: :math:`e^{2 \alpha}` is the largest one of a row over
    its smallest one.

    Args:
        attn (Tensor): Attention matrices with rows that sum to 1, (..., N, M).

    Returns:
        Tensor: (...), from the root of N / M for equal weights to that of N.

    Raises:
        ValueError: If a weight is negative.
    """
    least, most = attn.aminmax(dim=-1)
    if (least < 0).any():
        raise ValueError(f'attn must not be negative, got {attn.min().item():.3g}')
    queries, keys = attn.shape[-2:]
    return (queries / (1 + (keys - 1) * (least / most).amin(-1))).sqrt()


def attention_bound(
    heads: Tensor, weight: Tensor, dims_of_heads: Sequence[int]
) -> Tensor:
    r"""Bound on the high frequencies of multi-head attention (Proposition 4).

    .. math:: \|HC[MSA(X)]\|_F \le \sum_h \|W_O^h\|_2 \|HC[A_h X W_V^h]\|_F,
        \quad \|HC[A_h X W_V^h]\|_F \le \gamma_h \|W_V^h\|_2 \|HC[X]\|_F

    where the rows of :math:`A_h` sum to one number, with its :func:`smoothing_rate`
    :math:`\gamma_h`. A shortcut adds :math:`\|HC[X]\|_F` (Proposition 5).

    Args:
        heads (Tensor): Bounds on :math:`\|HC[A_h X W_V^h]\|_F`, (h, ).
        weight (Tensor): That of the projection of all heads, as ``nn.Linear`` has it,
            (C, C).
        dims_of_heads (Sequence[int]): Channels of each head.

    Returns:
        Tensor: A number.
    """
    parts = weight.split(list(dims_of_heads), -1)
    return torch.stack([_norm(x) for x in parts]) @ heads


def ffn_bound(first: Tensor, second: Tensor, slope: float) -> Tensor:
    r"""Bound on the high frequencies of an FFN over those of its input (Proposition 6).

    .. math:: \|HC[FFN(X)]\|_F \le \|W_2\|_2\, L\, \|W_1\|_2\, \|HC[X]\|_F

    A function of tokens with Lipschitz constant L takes no token further than L times
    from what becomes of their mean, and the mean of the results is nearer still.

    Args:
        first (Tensor): Weight of the first layer, (D, C).
        second (Tensor): Weight of the second one, (C, D).
        slope (float): L of the activation, its largest slope.

    Returns:
        Tensor: A number.
    """
    return _norm(second) * slope * _norm(first)


def _norm(a: Tensor) -> Tensor:
    """Largest singular value, of the smaller Gram matrix: much less work."""
    a = a if a.size(-2) <= a.size(-1) else a.mT
    return spectral_norm(a @ a.mT, symmetric=True).sqrt()
