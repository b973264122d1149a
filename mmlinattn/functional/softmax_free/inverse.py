"""The inverse of the landmarks' matrix as a function that has a gradient.

Legend: ... batch and heads, m landmarks, k columns of a right-hand side.
"""

from typing import Any, Optional

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from ..precision import at_least_float32, full_float32
from ..tracing import apply, is_exported
from .solvers import NEWTON_SOLVERS, CholeskySolver, Solver, check_solver, make_solver


def newton_pinv(
    a: Tensor,
    num_iters: int = 20,
    rhs: Optional[Tensor] = None,
    *,
    alpha: Optional[Tensor] = None,
    solver: str = 'auto',
    semidefinite: bool = False,
) -> Tensor:
    r"""Applies ``num_iters`` Newton-Raphson steps towards the inverse of A.

    .. math:: A_0 = \alpha A, \quad A_{k+1} = 2 A_k - A_k A A_k

    In A's eigenbasis the result is
    :math:`g(\lambda) = (1 - (1 - \alpha\lambda^2)^{2^T}) / \lambda`: the
    inverse of large eigenvalues, a smooth cut-off of small ones. Four solvers
    compute this operator: ``'newton'`` by its steps, ``'polynomial'`` by a
    polynomial next to g in few products (:mod:`~.polynomial`; 18 to 24 steps),
    ``'spectral'`` by g and an eigendecomposition, ``'lanczos'`` by g of the
    eigenvalues above the cut-off alone (:func:`~.lanczos.deflate`), matrix by
    matrix.

    It is finite whatever A's rank, and at equal row sums too, where the literal
    iteration stands still. But it multiplies rounding errors in A's null
    space by up to :math:`\alpha 2^T`: in float32, the result for equal landmarks (a
    constant image) has some three correct digits.

    The backward pass uses the differential of the inverse, with the forward
    result Y in its place: :math:`\nabla_A = -Y^T G Y^T` (*SOFT*, arXiv 2110.11945;
    exact where Newton has converged). It can be taken once, not twice.

    Args:
        a (Tensor): Symmetric positive semi-definite matrices, as Gaussian kernels
            are, (..., m, m). Half precision is computed in float32, autocast or
            not.
        num_iters (int): Number T of steps.
        rhs (Tensor, optional): (..., m, k). With it the result is the
            operator times ``rhs`` and the gradient costs O(m(m + k)).
        alpha (Tensor, optional): Step size, (..., 1, 1), below
            :math:`2/\lambda_{max}^2`. Default: :func:`newton_alpha`.
        solver (str): 'newton', 'polynomial', 'spectral', 'lanczos', or 'auto',
            which picks one of them by device, size and number of steps. The result of
            'polynomial' is worthless where an eigenvalue is negative, beyond rounding
            errors; nobody looks.
        semidefinite (bool): Whether ``a`` is known to have no such eigenvalue, so that
            'auto' may pick 'polynomial'.

    Returns:
        Tensor: The pseudo-inverse, (..., m, m), or its product with ``rhs``,
        (..., m, k), in the dtype of ``a``.

    Raises:
        ValueError: If ``a`` is not square, ``rhs`` has another number of rows,
            ``num_iters`` is no integer in 1...100 (18...24 for 'polynomial') or
            ``solver`` is unknown.
    """
    check_solver(solver, num_iters, solvers=('auto', *NEWTON_SOLVERS))
    if not is_exported():
        _check_shapes(a, rhs)
    if rhs is None:
        rhs = torch.eye(a.size(-1), device=a.device, dtype=a.dtype).expand_as(a)
    chosen = make_solver(solver, num_iters, a, semidefinite=semidefinite)
    return _solve(a, rhs, chosen, alpha)


def cholesky_solve(a: Tensor, rhs: Tensor) -> Tensor:
    """Solves A y = rhs for symmetric positive definite A, in float32 or more.

    The operator differs from :func:`newton_pinv`, which cuts off small eigenvalues;
    add the model's ridge to A first. It costs m^3 / 3 multiply-accumulates. The result
    is finite for landmarks of any rank if the ridge is well above A's rounding errors,
    1e-7 m.

    Args:
        a (Tensor): Symmetric positive definite matrices, (..., m, m).
        rhs (Tensor): Right-hand sides, (..., m, k).

    Returns:
        Tensor: y, (..., m, k), in the dtype of ``a``. The gradient can be
        taken once, not twice.
    """
    return _solve(a, rhs, CholeskySolver())


def _check_shapes(a: Tensor, rhs: Optional[Tensor]) -> None:
    if a.dim() < 2 or a.size(-1) != a.size(-2):
        raise ValueError(
            f'a must be square, (..., m, m), but has shape {tuple(a.shape)}'
        )
    if rhs is not None and rhs.shape[:-1] != a.shape[:-1]:
        raise ValueError(
            f'rhs must be (..., m, k) for a of shape {tuple(a.shape)}, got '
            f'{tuple(rhs.shape)}'
        )


def _solve(
    a: Tensor, rhs: Tensor, solver: Solver, alpha: Optional[Tensor] = None
) -> Tensor:
    dtype = a.dtype
    with full_float32(a):
        a, rhs = at_least_float32(a, rhs)
        return apply(_Solve, a, rhs, solver, alpha).to(dtype)


class _Solve(Function):
    """Keeps what the backward pass needs to solve again: a gradient through the
    steps or the factorization would cost more than everything else."""

    @staticmethod
    def forward(
        ctx: Any, a: Tensor, rhs: Tensor, solver: Solver, alpha: Optional[Tensor]
    ) -> Tensor:
        prepared = solver.prepare(a, alpha)
        y = solver.apply(prepared, rhs)
        ctx.save_for_backward(y, *prepared)
        ctx.solver = solver
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Optional[Tensor], Tensor, None, None]:
        y, *prepared = ctx.saved_tensors
        with full_float32(grad):
            grad_rhs = ctx.solver.apply_transposed(prepared, grad)
            grad_a = -grad_rhs @ y.mT if ctx.needs_input_grad[0] else None
        return grad_a, grad_rhs, None, None
