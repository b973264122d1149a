"""The 20-step Newton-Raphson pseudo-inverse of SOFT and SOFT++.

Legend: ... batch and heads, m landmarks, k columns of a right-hand side.
"""

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from .precision import at_least_float32, autocast_disabled
from .spectral import Deflated, apply_deflated, deflate, newton_filter

SOLVERS = ('auto', 'newton', 'spectral', 'lanczos', 'cholesky')

# From this size on, one eigendecomposition costs a CPU less than 40 products,
_SPECTRAL_FROM = 96
# and from this one on, its largest eigenpairs cost less than all.
_LANCZOS_FROM = 640


def check_solver(solver, num_iters=20, ridge=0.0, solvers=SOLVERS):
    """Refuses options of the inversion that make no sense.

    Raises:
        ValueError: If ``solver`` is unknown, ``num_iters`` is no positive
            integer, ``ridge`` is negative, or 'cholesky' is asked for without
            a positive ``ridge``.
    """
    if solver not in solvers:
        raise ValueError(f'solver must be one of {solvers}, got {solver!r}')
    if not isinstance(num_iters, int) or num_iters < 1:
        raise ValueError(f'num_iters must be a positive integer, got {num_iters!r}')
    if ridge < 0:
        raise ValueError(f'ridge must not be negative, got {ridge}')
    if solver == 'cholesky' and not ridge:
        raise ValueError(f"solver='cholesky' needs a positive ridge, got ridge={ridge}")


def newton_alpha(a, beta=0.5, max_halvings=10):
    r"""Step size of SOFT++ for every matrix by itself.

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
    square_diag = torch.linalg.vector_norm(a, dim=-1).square()
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


def newton_pinv(a, num_iters=20, rhs=None, *, alpha=None, solver='auto'):
    r"""Applies ``num_iters`` Newton-Raphson steps towards the inverse of A.

    .. math:: A_0 = \alpha A, \quad A_{k+1} = 2 A_k - A_k A A_k

    In A's eigenbasis the result is
    :math:`g(\lambda) = (1 - (1 - \alpha\lambda^2)^{2^T}) / \lambda`: the
    inverse of large eigenvalues, a smooth cut-off of small ones. Three solvers
    compute this operator: ``'newton'`` by its steps, ``'spectral'`` by g and an
    eigendecomposition, ``'lanczos'`` by g of the eigenvalues above the cut-off
    alone (:func:`~mmlinattn.functional.spectral.deflate`), matrix by matrix.

    It is finite whatever A's rank, and at equal row sums too, where the literal
    iteration stands still. But what rounding leaves in A's null space it
    multiplies by up to :math:`\alpha 2^T`: in float32 the result of equal
    landmarks (a constant image) has some three digits.

    The backward pass uses the differential of the inverse, with the forward
    result Y in its place: :math:`\nabla_A = -Y^T G Y^T` (*SOFT*, arXiv 2110.11945;
    exact where Newton has converged). It can be taken once, not twice.

    Args:
        a (Tensor): Symmetric matrices, (..., m, m). Half precision is
            computed in float32, autocast or not.
        num_iters (int): Number T of steps.
        rhs (Tensor, optional): (..., m, k). With it the result is the
            operator times ``rhs`` and the gradient costs O(m(m + k)).
        alpha (Tensor, optional): Step size, (..., 1, 1), below
            :math:`2/\lambda_{max}^2`. Default: :func:`newton_alpha`.
        solver (str): 'newton', 'spectral', 'lanczos', or 'auto', which picks
            one of them by device and shape.

    Returns:
        Tensor: The pseudo-inverse, (..., m, m), or its product with ``rhs``,
        (..., m, k), in the dtype of ``a``.

    Raises:
        ValueError: If ``a`` is not square, ``rhs`` has another number of rows,
            ``num_iters`` is no positive integer or ``solver`` is unknown.
    """
    if a.dim() < 2 or a.size(-1) != a.size(-2):
        raise ValueError(
            f'a must be square, (..., m, m), but has shape {tuple(a.shape)}'
        )
    check_solver(solver, num_iters, solvers=SOLVERS[:-1])
    if rhs is not None and rhs.shape[:-1] != a.shape[:-1]:
        raise ValueError(
            f'rhs must be (..., m, k) for a of shape {tuple(a.shape)}, got '
            f'{tuple(rhs.shape)}'
        )
    dtype = a.dtype
    if rhs is None:
        rhs = torch.eye(a.size(-1), device=a.device, dtype=a.dtype).expand_as(a)
    with autocast_disabled(a):
        a, rhs = at_least_float32(a, rhs)
        solver, alpha = settle(solver, a, alpha)
        return _Solve.apply(a, rhs, solver, alpha, num_iters).to(dtype)


def pick_solver(device_type, num_landmarks):
    """The faster way to one and the same operator on a device at a size."""
    if device_type != 'cpu' or num_landmarks < _SPECTRAL_FROM:
        return 'newton'
    return 'spectral' if num_landmarks < _LANCZOS_FROM else 'lanczos'


def settle(solver, a, alpha=None):
    """The solver that 'auto' stands for, and SOFT++'s step size for those that
    need one where none is given; see :func:`newton_pinv`."""
    if solver == 'auto':
        solver = pick_solver(a.device.type, a.size(-1))
    if alpha is None and solver != 'cholesky':
        alpha = newton_alpha(a.detach())
    return solver, alpha


def cholesky_solve(a, rhs):
    """Solves A y = rhs for symmetric positive definite A, in float32 or more.

    This is another operator than :func:`newton_pinv`, which cuts small
    eigenvalues off; add the ridge that a model states to A first. It costs
    m^3 / 3 multiply-accumulates, finite for landmarks of any rank as long as
    the ridge is well above A's rounding errors, 1e-7 m.

    Args:
        a (Tensor): Symmetric positive definite matrices, (..., m, m).
        rhs (Tensor): Right-hand sides, (..., m, k).

    Returns:
        Tensor: y, (..., m, k), in the dtype of ``a``. The gradient can be
        taken once, not twice.
    """
    dtype = a.dtype
    with autocast_disabled(a):
        a, rhs = at_least_float32(a, rhs)
        return _Solve.apply(a, rhs, 'cholesky').to(dtype)


class _Solve(Function):
    """Keeps what it takes to solve again: a gradient through the steps or the
    factorization would cost more than all else."""

    @staticmethod
    def forward(ctx, a, rhs, solver, alpha=None, num_iters=None):
        factors = factorize(solver, a, alpha, num_iters)
        y = apply_inverse(solver, factors, rhs, alpha, num_iters)
        ctx.save_for_backward(y, alpha, *factors)
        ctx.solver, ctx.num_iters = solver, num_iters
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        y, alpha, *factors = ctx.saved_tensors
        with autocast_disabled(grad):
            grad_rhs = apply_inverse(
                ctx.solver, factors, grad, alpha, ctx.num_iters, transpose=True
            )
            grad_a = -grad_rhs @ y.mT if ctx.needs_input_grad[0] else None
        return grad_a, grad_rhs, None, None, None


def factorize(solver, a, alpha=None, num_iters=None):
    """What :func:`apply_inverse` needs of A, (..., m, m).

    Args:
        solver (str): One of ``SOLVERS``, and not 'auto'.
        a (Tensor): Symmetric matrices in float32 or float64, (..., m, m).
        alpha (Tensor, optional): Step sizes, (..., 1, 1); not for 'cholesky'.
        num_iters (int, optional): Number of steps; not for 'cholesky'.

    Returns:
        Sequence[Tensor | None]: Of what shapes is the solver's own affair.
    """
    if solver == 'newton':
        return (_newton_steps(a, alpha, num_iters),)
    if solver == 'spectral':
        eigenvalues, vectors = torch.linalg.eigh(a)
        return vectors, newton_filter(eigenvalues.unsqueeze(-1), alpha, num_iters)
    if solver == 'lanczos':
        return _deflate_each(a, alpha, num_iters)
    return (torch.linalg.cholesky(a),)


def apply_inverse(solver, factors, x, alpha=None, num_iters=None, transpose=False):
    """The operator that A was factorized for, or its transpose, times x.

    Args:
        solver, alpha, num_iters: As they were for :func:`factorize`.
        factors (Sequence[Tensor | None]): What it returned.
        x (Tensor): (..., m, k).
        transpose (bool): Newton's steps round to a matrix that is not exactly
            symmetric; the other solvers' operators are.

    Returns:
        Tensor: (..., m, k).
    """
    if solver == 'newton':
        return (factors[0].mT if transpose else factors[0]) @ x
    if solver == 'spectral':
        vectors, filtered = factors
        return vectors @ (filtered * (vectors.mT @ x))
    if solver == 'lanczos':
        return _apply_each(factors, x, alpha, num_iters)
    return torch.cholesky_solve(x, factors[0])


def _newton_steps(a, alpha, num_iters):
    inverse = alpha * a
    for _ in range(num_iters):
        inverse = 2 * inverse - inverse @ a @ inverse
    return inverse


def _deflate_each(a, alpha, num_iters):
    """The fields of every matrix's :class:`Deflated`, one after the other."""
    return [
        field
        for matrix, step in zip(_one_by_one(a), _steps(a, alpha))
        for field in deflate(matrix, step, num_iters)
    ]


def _apply_each(factors, x, alpha, num_iters):
    factors = zip(*(iter(factors),) * len(Deflated._fields))
    y = x.new_empty(x.shape)
    for y_i, x_i, fields, step in zip(
        _one_by_one(y), _one_by_one(x), factors, _steps(x, alpha)
    ):
        y_i.copy_(apply_deflated(Deflated(*fields), x_i, step, num_iters))
    return y


def _one_by_one(x):
    return x.unsqueeze(0).flatten(0, -3)


def _steps(x, alpha):
    return alpha.expand(*x.shape[:-2], 1, 1).flatten().tolist()
