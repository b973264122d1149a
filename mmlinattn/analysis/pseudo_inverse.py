r"""Accuracy of the pseudo-inverse of the landmarks' matrix of softmax-free attention
(*Softmax-free Linear Transformers*, arXiv 2207.03341).

Legend: ... batch and heads, m landmarks.
"""

import torch
from torch import Tensor


def spectral_norm(a: Tensor, symmetric: bool = False) -> Tensor:
    r"""Largest singular value, :math:`\|A\|_2 = \max_x \|A x\| / \|x\|`.

    Args:
        a (Tensor): Matrices, (..., m, n).
        symmetric (bool): They are symmetric, so the cheaper eigenvalues serve.

    Returns:
        Tensor: (...).
    """
    if symmetric:
        return torch.linalg.eigvalsh(a).abs().amax(-1)
    return torch.linalg.matrix_norm(a, 2)


def normalize_by_degree(a_pinv: Tensor, a: Tensor) -> Tensor:
    r"""The matrix between SOFT++'s kernels, :math:`D^{-1/2} A^\dagger D^{-1/2}`
    with :math:`D = diag(A 1)`.

    Args:
        a_pinv (Tensor): Pseudo-inverses, (..., m, m).
        a (Tensor): Matrices of positive row sums, (..., m, m).

    Returns:
        Tensor: (..., m, m).
    """
    scale = a.sum(-1).rsqrt()
    return scale.unsqueeze(-1) * a_pinv * scale.unsqueeze(-2)


def pinv_residual(a: Tensor, a_pinv: Tensor) -> Tensor:
    r"""Distance from a pseudo-inverse, :math:`\|A X A - A\|_2 / \|A\|_2`.

    Args:
        a (Tensor): Matrices, (..., m, n).
        a_pinv (Tensor): Candidates X, (..., n, m).

    Returns:
        Tensor: (...), 0 for a generalized inverse.
    """
    return spectral_norm(a @ a_pinv @ a - a) / spectral_norm(a)
