"""Softmax-free attention of SOFT and SOFT++.

Legend: B batch, h heads, N tokens, m landmarks, d head dim.
"""

from typing import Any, Optional

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from ..precision import at_least_float32, full_float32
from ..tracing import apply, is_exported
from .inverse import cholesky_solve, newton_pinv
from .kernel import gaussian_kernel
from .products import pick_products
from .solvers import check_solver, make_solver
from .streaming import StreamedProducts

# Up to this many entries, P is kept in memory and not computed again.
_KEPT_ENTRIES = 2**18


def softmax_free_attention(
    q: Tensor,
    landmarks: Tensor,
    v: Tensor,
    normalize: bool = True,
    num_iters: int = 20,
    ridge: float = 0.0,
    solver: str = 'auto',
    keep_kernel: Optional[bool] = None,
    halves: Optional[int] = None,
) -> Tensor:
    r"""Nystroem attention on a Gaussian kernel, without softmax.

    With :math:`P = \kappa(\tilde Q, Q)`, :math:`A = \kappa(\tilde Q,
    \tilde Q)` and :math:`D = diag(A 1)`: SOFT is :math:`P^T A^\dagger P V`,
    SOFT++ (``normalize``) is :math:`P^T D^{-1/2} A^\dagger D^{-1/2} P V`
    (*Softmax-free Linear Transformers*, arXiv 2207.03341). Products run from
    right to left, so the cost is linear in N.

    Args:
        q (Tensor): Queries, which are the keys too, divided by
            :math:`d^{1/4}`, (B, h, N, d).
        landmarks (Tensor): Landmark queries on the same scale, (B, h, m, d).
        v (Tensor): Values, (B, h, N, d).
        normalize (bool): SOFT++ if True, with its step size; SOFT if False,
            with :math:`\alpha = 1.8 / \|A\|_1^2`.
        num_iters (int): Newton-Raphson steps.
        ridge (float): Added to A's diagonal before inversion; 0.01 in SOFT's
            official code.
        solver (str): 'newton', 'polynomial', 'spectral' and 'lanczos' compute the
            same operator (:func:`newton_pinv`); 'auto' picks one of them by device,
            number of landmarks and number of steps only. 'cholesky' computes another
            one, the inverse of A + ridge * I.
        keep_kernel (bool, optional): Holds P in memory, as in the equations.
            Otherwise its products are computed in blocks, and memory grows
            with N + m^2 only. Default: True without the Triton kernels, if P of
            one image and head is small enough for a cache.
        halves (int, optional): Float16 numbers, 1 or 2, whose sum the Triton kernels
            take for an entry of P, and of what it is multiplied by; with 1 those of
            'polynomial' are accurate to 5e-5, not to float32. Default: 1 for SOFT++
            where q and v are half precision, 2 elsewhere. See below.

    Returns:
        Tensor: (B, h, N, d), in the dtype of ``v``. All sums are in float32 or more,
        autocast and TF32 switched on or not.

    Raises:
        ValueError: If shapes do not fit, ``halves`` is none of 1, 2 and None, or as
            :func:`check_solver` says.

    The exponents of half-precision tokens are exact, and A is float32 in any case:
    ``halves`` is about products with P, and about those that 'polynomial' takes for
    A's inverse, whose errors are smaller (docs/benchmarks/inverse_precision.md). On
    tokens from smooth to noise and nearly equal ones
    (docs/benchmarks/half_precision.md), one half costs SOFT++ 2e-4 of the output and
    3e-4 to 6e-4 of gradients by the norm, at most 1.2e-3. Rounding the same results to
    bfloat16 costs 1.7e-3, to float16 2e-4; rounding the inputs costs 3e-3 to 9e-3 or
    4e-4 to 1.3e-3. SOFT loses up to 2.6e-2 of the landmarks' gradient, more than by
    rounding. Two halves cost at most 8e-6. Entries of P below 1e-5 lose digits in the
    kernels either way.
    """
    _check_shapes(q, landmarks, v)
    check_solver(solver, num_iters, ridge)
    if halves not in (None, 1, 2):
        raise ValueError(f'halves must be 1, 2 or None, got {halves!r}')
    if halves is None:
        is_half = all(x.dtype in (torch.float16, torch.bfloat16) for x in (q, v))
        halves = 1 if normalize and is_half else 2
    if is_exported():  # a size there stands for others, and blocks are a loop
        keep_kernel = True
    elif keep_kernel is None:
        # the kernels never write P, which takes longer than to compute it again
        keep_kernel = q.size(2) * landmarks.size(2) <= _KEPT_ENTRIES and isinstance(
            pick_products(q, landmarks, v), StreamedProducts
        )
    options = normalize, num_iters, ridge, solver
    with full_float32(q):
        if not keep_kernel:
            return _AttendInBlocks.apply(q, landmarks, v, *options, halves)
        dtype = v.dtype
        q, landmarks, v = at_least_float32(q, landmarks, v)
        return _attend(q, landmarks, v, *options).to(dtype)


def _attend(
    q: Tensor,
    landmarks: Tensor,
    v: Tensor,
    normalize: bool,
    num_iters: int,
    ridge: float,
    solver: str,
) -> Tensor:
    """Computes the equations with all matrices in memory."""
    a, scale, alpha = _landmark_matrix(landmarks, normalize, ridge)
    p = gaussian_kernel(landmarks, q)  # (B, h, m, N)
    x = scale * apply(_Product, p, v)  # (B, h, m, d)
    if solver == 'cholesky':
        y = cholesky_solve(a, x)
    else:
        y = newton_pinv(a, num_iters, x, alpha=alpha, solver=solver, semidefinite=True)
    return apply(_Product, p.transpose(-2, -1), scale * y)


class _Product(Function):
    """A matrix product whose gradients have all digits too."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return x @ y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        with full_float32(grad):
            return grad @ y.mT, x.mT @ grad


def _landmark_matrix(
    landmarks: Tensor, normalize: bool, ridge: float
) -> tuple[Tensor, Tensor, Optional[Tensor]]:
    """A + ridge * I (B, h, m, m), the diagonal of D^(-1/2) (B, h, m, 1), and SOFT's
    step size (B, h, 1, 1); None stands for that of SOFT++."""
    a = gaussian_kernel(landmarks)
    degree = a.sum(-1, keepdim=True)
    if ridge:
        a = a + ridge * torch.eye(a.size(-1), device=a.device, dtype=a.dtype)
    if normalize:
        return a, degree.rsqrt(), None
    norm = degree.detach().amax(-2, keepdim=True)
    # the second bound keeps alpha * lambda_max^2 below 2 at any ridge
    alpha = torch.minimum(1.8 / norm**2, 1.99 / (norm + ridge) ** 2)
    return a, torch.ones_like(degree), alpha


class _AttendInBlocks(Function):
    """Computes the same without P in memory. The backward pass needs no A, and
    computes the gradients of both products with P in one pass over its blocks."""

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        landmarks: Tensor,
        v: Tensor,
        normalize: bool,
        num_iters: int,
        ridge: float,
        solver: str,
        halves: int,
    ) -> Tensor:
        products = pick_products(q, landmarks, v, parts=halves)
        a, scale, alpha = _landmark_matrix(landmarks, normalize, ridge)
        inverse = make_solver(solver, num_iters, a, halves)
        prepared = inverse.prepare(a, alpha)
        x = products.product(landmarks, q, v)
        y = inverse.apply(prepared, scale * x)
        ctx.save_for_backward(q, landmarks, v, scale, x, y, *prepared)
        ctx.products, ctx.solver, ctx.normalize = products, inverse, normalize
        return products.product(q, landmarks, scale * y).to(v.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Optional[Tensor], ...]:
        q, landmarks, v, scale, x, y, *prepared = ctx.saved_tensors
        products = ctx.products
        with full_float32(grad):
            grad_y = products.product(landmarks, q, grad)
            # of the right-hand side, scale * x
            grad_rhs = ctx.solver.apply_transposed(prepared, scale * grad_y)
            grad_landmarks, grad_q, grad_v = products.joint_grad(
                landmarks, q, v, scale * y, scale * grad_rhs, grad, x, grad_y
            )
            # A's gradient has low rank: -grad_rhs y^T, and of its row sums
            columns, rows = y, -grad_rhs
            if ctx.normalize:
                grad_scale = (grad_y * y + grad_rhs * x).sum(-1, keepdim=True)
                rows = torch.cat((rows, -grad_scale * scale**3 / 2), dim=-1)
                columns = torch.cat((columns, torch.ones_like(scale)), dim=-1)
            # it nearly cancels P's part of the sum, so it has float32's digits
            of_rows, of_columns, _ = pick_products(landmarks, parts=2).product_grad(
                landmarks, landmarks, columns, rows
            )
            grad_landmarks = grad_landmarks + of_rows + of_columns
        grads = zip((grad_q, grad_landmarks, grad_v), (q, landmarks, v))
        return (*(g.to(x.dtype) for g, x in grads), *[None] * 5)


def _check_shapes(q: Tensor, landmarks: Tensor, v: Tensor) -> None:
    if is_exported():
        return
    fits = (
        q.dim() == landmarks.dim() == v.dim() == 4
        and q.shape[:3] == v.shape[:3]
        and q.shape[:2] == landmarks.shape[:2]
        and q.size(-1) == landmarks.size(-1)
    )
    if not fits:
        raise ValueError(
            'q, landmarks and v must be (B, h, N, d), (B, h, m, d) and '
            f'(B, h, N, d), got {tuple(q.shape)}, {tuple(landmarks.shape)} '
            f'and {tuple(v.shape)}'
        )
    if landmarks.size(2) == 0 or q.size(2) == 0:
        raise ValueError(
            f'attention needs tokens and landmarks, got N={q.size(2)} and '
            f'm={landmarks.size(2)}'
        )
