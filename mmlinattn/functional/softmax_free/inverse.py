r"""The inverse of the landmarks' matrix A, as SOFT and SOFT++ compute it.

T Newton-Raphson steps

.. math:: A_0 = \alpha A, \quad A_{k+1} = 2 A_k - A_k A A_k

take an eigenvalue to :math:`g(\lambda) = (1 - (1 - \alpha\lambda^2)^{2^T}) / \lambda`:
the inverse of large ones, a smooth cut-off of small ones. Three solvers compute this
operator, and a fourth another one:

- 'newton' takes the steps as printed. It is the specification, and fast for
  small matrices.
- 'spectral' applies g to the eigenvalues. One eigendecomposition takes a CPU less time
  than 40 products.
- 'polynomial' applies a polynomial next to g (:mod:`~.polynomial`), in five products
  of all matrices at once, which GPUs, compilers and exported files can do.
- 'cholesky' is the inverse of A itself, which needs a ridge. Files have no
  factorization: steps from another start converge to it.

Legend: ... batch and heads, m landmarks, k columns of a right-hand side, T steps.
"""

import math
from collections.abc import Sequence
from typing import Any, Optional

import torch
from torch import Tensor
from torch.autograd import Function

from ..precision import at_least_float32, autocast_disabled, full_precision, rounded_to
from ..tracing import apply, is_exported, is_traced
from . import polynomial

SOLVERS = ('auto', 'newton', 'polynomial', 'spectral', 'cholesky')
# More steps change nothing: in float64, the cut-off of small eigenvalues, 2^(-T/2)
# of the norm of A, is then below the rounding errors of large ones.
MAX_ITERS = 100
# Below this number of landmarks, 40 products take less time than the other ways.
FEW = 96

Prepared = Sequence[Any]


def newton_pinv(
    a: Tensor,
    num_iters: int = 20,
    rhs: Optional[Tensor] = None,
    *,
    alpha: Optional[Tensor] = None,
    solver: str = 'auto',
) -> Tensor:
    r"""Apply ``num_iters`` Newton-Raphson steps towards the inverse of A.

    The result is finite for any rank of A, and for equal row sums, where the literal
    iteration stands still. Rounding errors in A's null space grow by up to
    :math:`\alpha 2^T`: for equal landmarks, float32 has about three correct digits.

    The backward pass uses the differential of the inverse, with the forward
    result Y in its place: :math:`\nabla_A = -Y^T G Y^T` (*SOFT*, arXiv 2110.11945;
    exact where Newton has converged). That of the gradient itself follows the same
    rule.

    Args:
        a (Tensor): Symmetric positive semi-definite matrices, such as Gaussian
            kernels, (..., m, m). Half precision is computed in float32, autocast or
            not.
        num_iters (int): Number T of steps.
        rhs (Tensor, optional): (..., m, k). With it the result is the
            operator times ``rhs`` and the gradient costs O(m(m + k)).
        alpha (Tensor, optional): Step size, (..., 1, 1), below
            :math:`2/\lambda_{max}^2`. Default: :func:`newton_alpha`.
        solver (str): 'newton', 'polynomial', 'spectral', or 'auto', which picks one of
            them by device, size and number of steps.

    Returns:
        Tensor: The pseudo-inverse, (..., m, m), or its product with ``rhs``,
        (..., m, k), in the dtype of ``a``.

    Raises:
        ValueError: See :func:`check_solver`.
    """
    check_solver(solver, num_iters)
    if rhs is None:
        rhs = torch.eye(a.size(-1), device=a.device, dtype=a.dtype).expand_as(a)
    return _solve(a, rhs, _pick_solver(solver, num_iters, a), num_iters, alpha)


def cholesky(a: Tensor) -> Tensor:
    """Return the lower Cholesky factors of matrices (..., m, m); NaN of those with NaN.

    A GPU does not check that A is positive definite, because it would have to wait; on
    a CPU, an indefinite one is an error of torch.linalg.
    """
    if a.is_cpu and not is_traced():
        return _checked_cholesky(a)
    return torch.linalg.cholesky_ex(a, check_errors=a.is_cpu)[0]


def _checked_cholesky(a: Tensor) -> Tensor:
    try:
        return torch.linalg.cholesky_ex(a, check_errors=True)[0]
    except torch.linalg.LinAlgError:
        bad = a.isnan().any(-1).any(-1)[..., None, None]
        if not bad.any():
            raise
    eye = torch.eye(a.size(-1), device=a.device, dtype=a.dtype)
    return _checked_cholesky(torch.where(bad, eye, a)).masked_fill(bad, torch.nan)


def cholesky_solve(a: Tensor, rhs: Tensor) -> Tensor:
    """Solve A y = rhs, in float32 or more; :func:`newton_pinv` is another operator.

    Add a ridge to A first, well above its rounding errors, 1e-7 m. A GPU does not check
    that A is positive definite, because the check would wait for it.

    Args:
        a (Tensor): Symmetric positive definite matrices, (..., m, m).
        rhs (Tensor): Right-hand sides, (..., m, k).

    Returns:
        Tensor: y, (..., m, k), in the dtype of ``a``.
    """
    return _solve(a, rhs, 'schulz' if is_exported() else 'cholesky', 20, None)


def newton_alpha(a: Tensor) -> Tensor:
    r"""Step size of SOFT++, for each matrix separately.

    :math:`\alpha = 2^{1-n}/\|A\|_1^2` with the first n in 0...10 for which
    :math:`\|I - \alpha A^2\|_1 \le 1.01`, and the last one if none is (*Softmax-free
    Linear Transformers*, arXiv 2207.03341; the bound is that of the official code). A
    is symmetric and non-negative, so the norms need only the diagonal and the column
    sums of :math:`A^2`.

    Args:
        a (Tensor): Symmetric non-negative matrices, (..., m, m).

    Returns:
        Tensor: Step sizes, (..., 1, 1).
    """
    row_sum = a.sum(-1, keepdim=True)
    # columns of A^2: their sums and their diagonal entries, (..., m)
    with full_precision(a):
        square_sum = (a @ row_sum).squeeze(-1)
    square_diag = a.square().sum(-1)
    norm = row_sum.amax((-2, -1))
    exponents = torch.arange(11, device=a.device, dtype=a.dtype)
    candidates = 2 * 0.5**exponents / norm.square().unsqueeze(-1)
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


def newton_filter(eigenvalues: Tensor, alpha: Tensor, num_iters: int) -> Tensor:
    r""":math:`g(\lambda)`, to which T steps take an eigenvalue; 0 for 0."""
    reduced = alpha * eigenvalues.square()
    residual = 1 - reduced
    # log1p keeps the digits of a residual next to 1
    log_residual = torch.where(
        residual > 0, torch.log1p(-reduced), residual.abs().log()
    )
    filtered = -torch.expm1(2.0**num_iters * log_residual) / eigenvalues
    return filtered.where(eigenvalues != 0, eigenvalues)


def check_solver(
    solver: str, num_iters: int = 20, ridge: float = 0.0, normalize: Any = True
) -> None:
    """Check the options of the inversion, and the kind of normalization.

    Raises:
        ValueError: If ``solver`` is unknown, ``num_iters`` is no integer in
            1...100, ``ridge`` is negative or not finite, or 'cholesky' is asked
            for without a positive ``ridge``, or 'polynomial' for fewer than 18 or
            more than 24 steps; or if ``normalize`` is not True, False or 'rows'.
    """
    if normalize not in (True, False, 'rows'):
        raise ValueError(
            f"normalization must be True, False or 'rows', got {normalize!r}"
        )
    if solver not in SOLVERS:
        raise ValueError(f'solver must be one of {SOLVERS}, got {solver!r}')
    if not isinstance(num_iters, int) or not 1 <= num_iters <= MAX_ITERS:
        raise ValueError(
            f'num_iters must be an integer in 1...{MAX_ITERS}, got {num_iters!r}'
        )
    if solver == 'polynomial' and not _has_polynomial(num_iters):
        steps = f'{polynomial.FEWEST_STEPS}...{polynomial.MOST_STEPS}, got {num_iters}'
        raise ValueError(
            f"solver='polynomial' takes num_iters in {steps}; solver='newton' takes any"
        )
    if not 0 <= ridge < math.inf:
        raise ValueError(f'ridge must be finite and not negative, got {ridge}')
    if solver == 'cholesky' and not ridge:
        raise ValueError(f"solver='cholesky' needs a positive ridge, got ridge={ridge}")


def _pick_solver(solver: str, num_iters: int, a: Tensor) -> str:
    """Resolve 'auto', and 'spectral' in a file, which has no eigenvalues."""
    if solver != 'auto' and not is_exported():
        return solver
    if not is_exported():  # a file serves for all sizes
        if a.size(-1) < FEW:
            return 'newton'
        if a.is_cpu and not is_traced():
            return 'spectral'
    return 'polynomial' if _has_polynomial(num_iters) else 'newton'


def _has_polynomial(num_iters: int) -> bool:
    return polynomial.FEWEST_STEPS <= num_iters <= polynomial.MOST_STEPS


def _solve(
    a: Tensor, rhs: Tensor, solver: str, num_iters: int, alpha: Optional[Tensor]
) -> Tensor:
    dtype = a.dtype
    with autocast_disabled(a):
        a, rhs = at_least_float32(a, rhs)
        if rounded_to(a) and is_traced():  # a compiled graph changes no setting
            a, rhs = a.double(), rhs.double()
        # a gradient through the steps or the factorization would cost more than
        # everything else
        fixed = a.detach()
        if alpha is not None:
            alpha = alpha.detach()
        elif solver not in ('cholesky', 'schulz'):
            alpha = newton_alpha(fixed)
        with full_precision(a):
            prepared = _WAYS[solver].prepare(fixed, alpha, num_iters)
        return apply(_Solve, a, rhs, solver, num_iters, *prepared).to(dtype)


class _Solve(Function):
    """Multiplies by the inverse of A, by the tensors that are prepared of it, and keeps
    them: the backward pass is such a product, too."""

    generate_vmap_rule = True

    @staticmethod
    def forward(
        a: Tensor, rhs: Tensor, solver: str, num_iters: int, *prepared: Any
    ) -> Tensor:
        with full_precision(rhs):
            return _WAYS[solver].multiply(prepared, rhs, num_iters)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        a, _, ctx.solver, ctx.num_iters, *prepared = inputs
        ctx.save_for_backward(a, output, *prepared)
        ctx.save_for_forward(a, output, *prepared)

    @staticmethod
    def tangent(ctx: Any, of_a: Any, of_rhs: Any, *others: Any) -> Tensor:
        """Return the derivative for those of A and of the right-hand side."""
        a, y, *prepared = ctx.saved_tensors
        with full_precision(y):
            change = 0 if of_a is None else -of_a @ y
        change = change if of_rhs is None else of_rhs + change
        return apply(_Solve, a, change, ctx.solver, ctx.num_iters, *prepared)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Optional[Tensor], ...]:
        a, y, *prepared = ctx.saved_tensors
        with autocast_disabled(grad), full_precision(grad):
            # the operator is symmetric
            grad_rhs = apply(_Solve, a, grad, ctx.solver, ctx.num_iters, *prepared)
            grad_a = None
            if ctx.needs_input_grad[0]:
                grad_a = -grad_rhs @ y.mT
        return grad_a, grad_rhs, None, None, *(None for _ in prepared)


class _Newton:
    """The iteration as printed; the inverse (n, m, m) is prepared."""

    @classmethod
    def prepare(cls, a: Tensor, alpha: Any, num_iters: int) -> Prepared:
        """Tensors for :meth:`multiply`, of matrices (..., m, m), the step size
        (..., 1, 1) and T."""
        inverse, a = _one_axis(cls.start(a, alpha)), _one_axis(a)
        for _ in range(num_iters):
            product = torch.bmm(inverse, a)
            inverse = torch.baddbmm(inverse, product, inverse, beta=2, alpha=-1)
        return (inverse,)

    @staticmethod
    def start(a: Tensor, alpha: Any) -> Tensor:
        return alpha * a

    @staticmethod
    def multiply(prepared: Prepared, x: Tensor, num_iters: int) -> Tensor:
        """Return the operator times x, (..., m, k)."""
        return prepared[0].view(*x.shape[:-1], -1) @ x


class _Schulz(_Newton):
    """The inverse of a matrix of condition up to 1e4, by steps from I / |A|_1. They
    square the residual 1 - lambda / |A|_1 of an eigenvalue."""

    @staticmethod
    def start(a: Tensor, alpha: Any) -> Tensor:
        norm = a.sum(-1, keepdim=True).amax(-2, keepdim=True)
        return torch.eye(a.size(-1), device=a.device, dtype=a.dtype) / norm


class _Spectral(_Newton):
    """Eigenvectors (..., m, m), and g of their eigenvalues (..., m, 1)."""

    @classmethod
    def prepare(cls, a: Tensor, alpha: Tensor, num_iters: int) -> Prepared:
        eigenvalues, vectors = torch.linalg.eigh(a)
        return vectors, newton_filter(eigenvalues.unsqueeze(-1), alpha, num_iters)

    @staticmethod
    def multiply(prepared: Prepared, x: Tensor, num_iters: int) -> Tensor:
        vectors, filtered = prepared
        return vectors @ (filtered * (vectors.mT @ x))


class _Polynomial(_Newton):
    """The scale (n, 1, 1), and the matrices that the polynomial needs."""

    @classmethod
    def prepare(cls, a: Tensor, alpha: Tensor, num_iters: int) -> Prepared:
        scale = _one_axis((alpha / 2).sqrt().expand(*a.shape[:-2], 1, 1))
        steps = polynomial.newton_polynomial(num_iters, a.dtype)
        return scale, *polynomial.polynomial_powers(steps, scale * _one_axis(a))

    @staticmethod
    def multiply(prepared: Prepared, x: Tensor, num_iters: int) -> Tensor:
        scale, *powers = prepared
        steps = polynomial.newton_polynomial(num_iters, x.dtype)
        y = polynomial.apply_polynomial(steps, scale, powers, _one_axis(x))
        return y.view(x.shape)


class _Cholesky(_Newton):
    """The lower factor (..., m, m)."""

    @classmethod
    def prepare(cls, a: Tensor, alpha: None, num_iters: int) -> Prepared:
        return (cholesky(a),)

    @staticmethod
    def multiply(prepared: Prepared, x: Tensor, num_iters: int) -> Tensor:
        # `cholesky_solve` would loop over the matrices on a GPU
        (lower,) = prepared
        y = torch.linalg.solve_triangular(lower, x, upper=False)
        return torch.linalg.solve_triangular(lower.mT, y, upper=True)


def _one_axis(x: Tensor) -> Tensor:
    """Return all axes before the last two as one."""
    return x.unsqueeze(0).flatten(0, -3)


_WAYS: dict[str, type[_Newton]] = {
    'newton': _Newton,
    'spectral': _Spectral,
    'polynomial': _Polynomial,
    'cholesky': _Cholesky,
    'schulz': _Schulz,
}
