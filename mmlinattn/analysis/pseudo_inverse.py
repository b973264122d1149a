r"""Accuracy of Newton-Raphson on the landmarks' matrix of softmax-free attention.

.. math:: A_0 = \alpha A, \quad A_{k+1} = 2 A_k - A_k A A_k

(*Softmax-free Linear Transformers*, arXiv 2207.03341). A is symmetric, so every
:math:`A_k` has its eigenvectors, and an eigenvalue :math:`\lambda` of A becomes
:math:`(1 - (1 - \alpha \lambda^2)^{2^k}) / \lambda`. The measures of steps need
eigenvalues only, and are free of the rounding errors of the steps.

Legend: ... batch and heads, m landmarks, T steps.
"""

from typing import Union

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


def newton_residuals(
    eigenvalues: Tensor, alpha: Union[Tensor, float], num_iters: int
) -> Tensor:
    r""":func:`pinv_residual` after 0 to T Newton-Raphson steps.

    .. math:: \max_\lambda |\lambda| |1 - \alpha \lambda^2|^{2^k}
        / \max_\lambda |\lambda|

    Args:
        eigenvalues (Tensor): Eigenvalues of A, (..., m).
        alpha (Tensor | float): Step size, a number or (..., 1).
        num_iters (int): T.

    Returns:
        Tensor: (..., T + 1).
    """
    residuals, size = (1 - alpha * eigenvalues.square()).abs(), eigenvalues.abs()
    largest = []
    for _ in range(num_iters + 1):
        largest.append((size * residuals).amax(-1))
        residuals = residuals.square()
    return torch.stack(largest, -1) / size.amax(-1, keepdim=True)


def newton_cutoff(alpha: Union[Tensor, float], num_iters: int) -> Tensor:
    r"""The eigenvalue that T steps invert by one half.

    .. math:: \lambda_c = \sqrt{(1 - 2^{-2^{-T}}) / \alpha}

    There, :math:`(1 - \alpha \lambda^2)^{2^T} = 1/2`. Larger eigenvalues are
    inverted, smaller ones cut off.

    Args:
        alpha (Tensor | float): Step size.
        num_iters (int): T.

    Returns:
        Tensor: The shape of ``alpha``.
    """
    alpha = torch.as_tensor(alpha)
    log_half = torch.as_tensor(0.5, dtype=torch.float64).log()
    half_point = -torch.expm1(log_half / 2.0**num_iters)
    return (half_point.to(alpha.device) / alpha).sqrt().to(alpha.dtype)
