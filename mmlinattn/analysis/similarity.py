"""Similarity of tokens.

Legend: ... batch or more, N tokens, C channels.
"""

import torch
from torch import Tensor
from torch.nn.functional import normalize

# Cosines in memory at a time, per image.
_ENTRIES = 2**24


def hc_proportion(x: Tensor, over_dc: bool = False) -> Tensor:
    r"""Return the high-frequency proportion of a token sequence.

    .. math:: \|HC[X]\|_F / \|X\|_F, \quad DC[X] = \frac{1}{N} 1 1^T X,
        \quad HC[X] = X - DC[X]

    (*Anti-Oversmoothing in Deep Vision Transformers via the Fourier Domain Analysis*,
    arXiv 2203.05962, Appendix G.3.) Its Definition 1 has the ratio
    :math:`\|HC[X]\|_F / \|DC[X]\|_F`, which a repeated low-pass filter takes to 0. With
    p for the proportion, the ratio is :math:`p / \sqrt{1 - p^2}`.

    Args:
        x (Tensor): Tokens, (..., N, C).
        over_dc (bool): Returns the ratio.

    Returns:
        Tensor: (...), values in [0, 1]; the ratio is infinite if the mean token is zero
        and others are not.
    """
    mean = x.mean(-2, keepdim=True)
    # DC[X] has the mean token in each of its N rows
    whole = mean.expand_as(x) if over_dc else x
    return (x - mean).norm(dim=(-2, -1)) / whole.norm(dim=(-2, -1))


def token_similarity(x: Tensor) -> Tensor:
    r"""Return the mean cosine similarity of pairs of tokens.

    .. math:: \frac{2}{N (N - 1)} \sum_{i < j}
        \frac{|x_i^T x_j|}{\|x_i\| \|x_j\|}

    1 means that all tokens point in one direction (arXiv 2203.05962). A token that
    is zero has similarity 0 with all others. Time grows with N^2, memory does not.

    Args:
        x (Tensor): Tokens, (..., N, C).

    Returns:
        Tensor: (...), values in [0, 1].
    """
    x = normalize(x, dim=-1)
    num = x.size(-2)
    sums = sum(
        (rows @ x.transpose(-2, -1)).abs().sum((-2, -1))
        for rows in x.split(max(_ENTRIES // num, 1), -2)
    )
    own = x.square().sum((-2, -1))  # 1 each, 0 for a zero token
    return (torch.as_tensor(sums) - own) / (num * (num - 1))
