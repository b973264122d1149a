r"""Gaussian attention that is linear in the number of tokens: the linear SOFT++, ours.

The kernel K of all tokens is approximated by that of few landmarks. With P, (m, N), the
kernel of landmarks and tokens, A that of the landmarks, and L the Cholesky factor of
:math:`A + \rho m I`,

.. math:: U = L^{-1} P, \quad \hat K = U^T U,

which is positive semi-definite by construction. It misses what no landmark is near to.
There K itself takes over, in blocks on the diagonal:

.. math:: \tilde K = \hat K + blockdiag(K - \hat K), \quad
    out = \tilde K V / \max(\tilde K 1, 1).

A block is one token (FITC: Snelson & Ghahramani, *Sparse Gaussian Processes using
Pseudo-inputs*, 2006) or a window of the map (PITC: Quinonero-Candela & Rasmussen, *A
Unifying View of Sparse Approximate Gaussian Process Regression*, 2005). A low-rank part
beside a sparse one is also what *Scatterbrain* (arXiv 2110.15343) has. No row sum of K
is below 1, because every token attends at least to itself.

Legend: B batch, h heads, N tokens, m landmarks, d head dim, e channels of values, n
windows of w = b * b tokens.
"""

from typing import Any, Optional

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn.functional import pad

from ..blocks import Shape, blockify, unblockify
from ..maps import unflatten
from ..precision import at_least_float32, autocast_disabled, full_precision, rounded_to
from ..tokens import sum_over_tokens, to_every_token
from ..tracing import apply, is_exported
from .inverse import cholesky
from .kernel import kernel_by_norms, landmark_kernels

# Steps to an inverse square root in files: enough for a condition of 1e4.
_ROOT_STEPS = 24


def linear_softmax_free_attention(
    q: Tensor,
    landmarks: Tensor,
    v: Tensor,
    ridge: float = 1e-3,
    window: int = 1,
    hw_shape: Optional[Shape] = None,
) -> Tensor:
    r"""Compute :math:`\tilde K V / \max(\tilde K 1, 1)`, see the module.

    Args:
        q (Tensor): Queries, which are the keys too, divided by :math:`d^{1/4}`,
            (B, h, N, d).
        landmarks (Tensor): Landmark queries on the same scale, (B, h, m, d).
        v (Tensor): Values, (B, h, N, d).
        ridge (float): :math:`\rho`, positive; A's norm grows with m, and so does what
            is added to its diagonal.
        window (int): Side b of the windows in which the kernel is exact; 1: only its
            diagonal is. Windows at the right and bottom edges may be incomplete.
        hw_shape (tuple[int], optional): (H, W) with N = H * W; windows need it.

    Returns:
        Tensor: (B, h, N, d), in the dtype of ``v``; computed in float32 or more.
    """
    dtype = v.dtype
    with autocast_disabled(q):
        q, landmarks, v = at_least_float32(q, landmarks, v)
        v = pad(v, (0, 1), value=1.0)  # the last column becomes the row sums
        if window == 1:
            sums = with_exact_diagonal(q, landmarks, v, ridge)
        else:
            assert hw_shape is not None
            sums = with_exact_windows(q, landmarks, v, ridge, window, hw_shape)
        products, row_sums = sums.split([sums.size(-1) - 1, 1], -1)
        return (products / row_sums.clamp(min=1)).to(dtype)


def with_exact_diagonal(
    q: Tensor, landmarks: Tensor, v: Tensor, ridge: float
) -> Tensor:
    r""":math:`(\hat K + diag(1 - |u_i|^2)) V`, of queries (B, h, N, d), landmarks
    (B, h, m, d) and values (B, h, N, e) to (B, h, N, e)."""
    u, *_ = nystroem_features(q, landmarks, ridge)
    missing = (1 - u.square().sum(-1, keepdim=True)).clamp(min=0)
    return _low_rank_product(u, v) + missing * v


def with_exact_windows(
    q: Tensor, landmarks: Tensor, v: Tensor, ridge: float, window: int, hw_shape: Shape
) -> Tensor:
    r""":math:`(\hat K + blockdiag(K - \hat K)) V`; see :func:`with_exact_diagonal`."""
    # values of padding are 0
    q, v = [blockify(x, hw_shape, window) for x in (q, v)]
    windows = q.shape[2:4]
    u, x, norms = nystroem_features(q.flatten(2, 3), landmarks, ridge)
    far = _low_rank_product(u, v.flatten(2, 3))
    tokens = [unflatten(y, 2, windows) for y in (far, x, norms, u)]
    return unblockify(apply(_AddMissing, *tokens, v), hw_shape, window)


def nystroem_features(
    q: Tensor, landmarks: Tensor, ridge: float
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Return the tokens' features :math:`U^T`, (B, h, N, m), whose inner products are
    :math:`\hat K`; no row is longer than 1, but for rounding. Also the shifted queries
    and their norms of :func:`~.kernel.landmark_kernels`."""
    a, kernel, x, norms = landmark_kernels(landmarks, q, landmarks.size(2) * ridge)
    root = inverse_root(a)
    with full_precision(q):
        return to_every_token(kernel, root.transpose(-2, -1)), x, norms


def _low_rank_product(u: Tensor, v: Tensor) -> Tensor:
    with full_precision(v):
        return to_every_token(u, sum_over_tokens(u, v))


class _AddMissing(Function):
    """F + (K - U U^T) V in each window, of F and V (B, h, n, w, e), tokens
    (B, h, n, w, d), their norms (B, h, n, w, 1), and U (B, h, n, w, m).

    The backward pass computes the symmetric matrices again: they would be the largest
    that a training keeps. Autograd adds the gradient of the norms to that of the
    tokens.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(far: Tensor, x: Tensor, norms: Tensor, u: Tensor, v: Tensor) -> Tensor:
        with full_precision(far):
            return _add_product(far, _matrices(x, norms, u)[1], v)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[1:])
        ctx.save_for_forward(*inputs[1:])

    @staticmethod
    def tangent(ctx: Any, of_far: Optional[Tensor], *tangents: Optional[Tensor]) -> Any:
        """Return the derivative of the output for those of the inputs."""
        x, norms, u, v = inputs = ctx.saved_tensors
        of_x, of_norms, of_u, of_v = (
            torch.zeros_like(y) if of_y is None else of_y
            for y, of_y in zip(inputs, tangents)
        )
        with full_precision(u):
            kernel, missing = _matrices(x, norms, u)
            of_kernel = kernel * _plus_transpose(of_x @ x.mT - of_norms * norms)
            change = of_kernel - _plus_transpose(of_u @ u.mT)
            out = change @ v + missing @ of_v
        return out if of_far is None else of_far + out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        x, norms, u, v = ctx.saved_tensors
        with autocast_disabled(grad), full_precision(grad):
            kernel, missing = _matrices(x, norms, u)
            of_missing = _plus_transpose(grad @ v.mT)
            of_exponents = of_missing * kernel
            of_norms = -norms * of_exponents.sum(-1, keepdim=True)
            return grad, of_exponents @ x, of_norms, -of_missing @ u, missing @ grad


def _matrices(x: Tensor, norms: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """K and K - U U^T, (B, h, n, w, w)."""
    kernel = kernel_by_norms(x.contiguous(), norms, x.size(-2))
    return kernel, _add_product(kernel, u, u.transpose(-2, -1), -1)


def _add_product(x: Tensor, y: Tensor, z: Tensor, alpha: int = 1) -> Tensor:
    """x + alpha y z, of matrices (B, h, n, ...)."""
    factors = (matrix.flatten(0, 2) for matrix in (x, y, z))
    return torch.baddbmm(*factors, alpha=alpha).view(x.shape)


def _plus_transpose(x: Tensor) -> Tensor:
    return x + x.mT


def inverse_root(a: Tensor) -> Tensor:
    """R with R^T R = A^-1, of positive definite matrices (..., m, m): the inverse of
    the Cholesky factor, or in a file, which has no factorization, of the root."""
    eye = torch.eye(a.size(-1), device=a.device, dtype=a.dtype)
    if is_exported():
        return _inverse_square_root(a, eye)
    dtype = a.dtype
    if rounded_to(a):
        a, eye = a.double(), eye.double()
    inverse = torch.linalg.solve_triangular(cholesky(a), eye.expand_as(a), upper=False)
    return inverse.to(dtype)


def _inverse_square_root(a: Tensor, eye: Tensor) -> Tensor:
    """A^(-1/2) by coupled Newton-Schulz steps: Y to (A / c)^(1/2), Z to its inverse."""
    norm = a.sum(-1, keepdim=True).amax(-2, keepdim=True)
    y, z = a / norm, eye.expand_as(a)
    for _ in range(_ROOT_STEPS):
        step = 1.5 * eye - 0.5 * (z @ y)
        y, z = y @ step, step @ z
    return z * norm.rsqrt()
