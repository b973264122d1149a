"""The mathematics of the Newton-Raphson pseudo-inverse of SOFT and SOFT++.

.. math:: A_0 = \\alpha A, \\quad A_{k+1} = 2 A_k - A_k A A_k

Legend: ... batch and heads, m landmarks, T steps.
"""

from typing import Union

import torch
from torch import Tensor

from .halves import left_halves, product_of_halves, right_halves


def newton_alpha(a: Tensor, beta: float = 0.5, max_halvings: int = 10) -> Tensor:
    r"""Step size of SOFT++, for each matrix separately.

    :math:`\alpha = 2\beta^n/\|A\|_1^2` with the first n in 0...max_halvings
    for which :math:`\|I - \alpha A^2\|_1 \le 1.01`, and the last one if none
    is (*Softmax-free Linear Transformers*, arXiv 2207.03341; the bound is that
    of the official code). As A is symmetric and non-negative, the norms need
    only the diagonal and the column sums of :math:`A^2`.

    Args:
        a (Tensor): Symmetric non-negative matrices, (..., m, m).
        beta (float): Factor between two candidates.
        max_halvings (int): Largest exponent n.

    Returns:
        Tensor: Step sizes, (..., 1, 1).
    """
    row_sum = a.sum(-1, keepdim=True)
    # columns of A^2: their sums and their diagonal entries, (..., m)
    square_sum = (a @ row_sum).squeeze(-1)
    square_diag = a.square().sum(-1)
    norm = row_sum.amax((-2, -1))
    exponents = torch.arange(max_halvings + 1, device=a.device, dtype=a.dtype)
    candidates = 2 * beta**exponents / norm.square().unsqueeze(-1)
    alpha = candidates[..., None]
    diag = alpha * square_diag.unsqueeze(-2)
    off_diag = alpha * (square_sum - square_diag).unsqueeze(-2)
    residual = ((1 - diag).abs() + off_diag).amax(-1)
    # argmax of booleans is the first True
    accepted = residual <= 1.01
    accepted[..., -1] = True
    first = accepted.to(torch.uint8).argmax(-1, keepdim=True)
    alpha = candidates.gather(-1, first).squeeze(-1)
    # With equal row sums alpha * lambda_max^2 is exactly 2, where the
    # iteration stands still at 0; ||A^2||_1 bounds lambda_max^2 from above.
    limit = 2 * (1 - 1e-4) / square_sum.amax(-1)
    return torch.minimum(alpha, limit)[..., None, None]


def newton_steps(a: Tensor, alpha: Tensor, num_iters: int) -> Tensor:
    """Runs the iteration as it is written, (..., m, m) to (..., m, m)."""
    inverse = (alpha * a).unsqueeze(0).flatten(0, -3)
    right = a.unsqueeze(0).flatten(0, -3)
    for _ in range(num_iters):
        inverse = torch.baddbmm(inverse, inverse @ right, inverse, beta=2, alpha=-1)
    return inverse.view(a.shape)


def newton_steps_of_halves(a: Tensor, alpha: Tensor, num_iters: int) -> Tensor:
    r"""Runs it on tensor cores, with the accuracy of float32.

    Of :math:`\alpha^{-1/2} A_k` the norm is known beforehand, below 2 at first and
    :math:`0.8 \cdot 2^{k/2}` after k steps, and that of :math:`A_k A` is below 2.

    Args:
        a (Tensor): Symmetric positive semi-definite, float32, (..., m, m).
        alpha (Tensor): Step size, (..., 1, 1).
        num_iters (int): T.

    Returns:
        Tensor: (..., m, m).
    """
    unit = alpha.sqrt()
    # the iterate is unit * bound * inverse
    bounds = [2.0 ** (1 + step // 2) for step in range(num_iters + 1)]
    inverse = (unit * a / 2).unsqueeze(0).flatten(0, -3)
    right = right_halves(inverse)
    for bound, following in zip(bounds, bounds[1:]):
        product = bound * product_of_halves(left_halves(inverse), right)
        product = product_of_halves(left_halves(product), right_halves(inverse))
        inverse = (2 * bound / following) * (inverse - product)
    return unit * bounds[-1] * inverse.view(a.shape)


def newton_filter(
    eigenvalues: Tensor, alpha: Union[Tensor, float], num_iters: int
) -> Tensor:
    r""":math:`g(\lambda) = (1 - (1 - \alpha\lambda^2)^{2^T}) / \lambda`, to which
    T steps take an eigenvalue; 0 for 0.

    Args:
        eigenvalues (Tensor): :math:`\lambda`.
        alpha (Tensor | float): Step size, below :math:`2 / \lambda_{max}^2`.
        num_iters (int): T.

    Returns:
        Tensor: Of the shape of ``eigenvalues``.
    """
    reduced = alpha * eigenvalues.square()
    residual = 1 - reduced
    # log1p keeps the digits of a residual next to 1
    log_residual = torch.where(
        residual > 0, torch.log1p(-reduced), residual.abs().log()
    )
    filtered = -torch.expm1(2.0**num_iters * log_residual) / eigenvalues
    return filtered.where(eigenvalues != 0, eigenvalues)
