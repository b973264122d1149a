"""Softmax-free attention of SOFT and SOFT++.

Legend: B batch, h heads, N tokens, m landmarks, d head dim.
"""

from typing import Optional, Union

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..precision import at_least_float32, autocast_disabled, full_precision
from ..tokens import sum_over_tokens, to_every_token
from ..tracing import is_exported
from .inverse import FEW, check_solver, cholesky_solve, newton_pinv
from .kernel import gaussian_kernel, kernel_products, landmark_kernels, product_dtype

# The least row sum that rows are divided by, over the mean of all.
_LEAST_ROW_SUM = 0.01


def softmax_free_attention(
    q: Tensor,
    landmarks: Tensor,
    v: Tensor,
    normalize: Union[bool, str] = True,
    num_iters: int = 20,
    ridge: float = 0.0,
    solver: str = 'auto',
    relative_ridge: bool = False,
    trained_size: Optional[tuple[int, int]] = None,
) -> Tensor:
    r"""Compute Nystroem attention on a Gaussian kernel, without softmax.

    With :math:`P = \kappa(\tilde Q, Q)`, :math:`A = \kappa(\tilde Q,
    \tilde Q)` and :math:`D = diag(A 1)`: SOFT is :math:`\hat K V` with
    :math:`\hat K = P^T A^\dagger P`, and SOFT++ is :math:`P^T D^{-1/2} A^\dagger
    D^{-1/2} P V` (*Softmax-free Linear Transformers*, arXiv 2207.03341). With
    ``normalize='rows'``, ours, it is :math:`\hat K V / \hat K 1`. Products run from
    right to left, so the cost is linear in N.

    Args:
        q (Tensor): Queries, which are the keys too, divided by
            :math:`d^{1/4}`, (B, h, N, d).
        landmarks (Tensor): Landmark queries on the same scale, (B, h, m, d).
        v (Tensor): Values, (B, h, N, d).
        normalize (bool | str): True: SOFT++, by the row sums of the landmarks, with
            its step size. False: SOFT, with :math:`\alpha = 1.8 / \|A\|_1^2`.
            'rows': by the row sums of all tokens (:func:`divide_by_row_sums`).
        num_iters (int): Newton-Raphson steps.
        ridge (float): Added to A's diagonal before inversion; 0.01 in SOFT's
            official code.
        solver (str): 'newton', 'polynomial' and 'spectral' compute the same operator
            (:func:`newton_pinv`); 'auto' picks one of them by device, number of
            landmarks and number of steps only. 'cholesky' computes another one, the
            inverse of A + ridge * I.
        relative_ridge (bool): Adds ``m * ridge``: A's norm grows with m.
        trained_size (tuple[int], optional): Numbers :math:`N_0, m_0` of tokens and
            landmarks of the training. :math:`(N_0 / N)(m / m_0)` keeps the norm of
            SOFT++ at other sizes, :math:`N_0 / N` that of SOFT; 'rows' needs no factor.

    Returns:
        Tensor: (B, h, N, d), in the dtype of ``v``. A and its inverse are in float32 or
            more, even under autocast and TF32. So are P's products, except in half
            precision on a GPU without gradients (:func:`~.kernel.product_dtype`).

    Raises:
        ValueError: See :func:`check_solver`.
    """
    check_solver(solver, num_iters, ridge, normalize)
    num_landmarks = landmarks.size(2)
    added = num_landmarks * ridge if relative_ridge else ridge
    factor = None
    if trained_size is not None:
        factor = trained_size[0] / q.size(2)
        factor = factor * num_landmarks / trained_size[1] if normalize else factor
    with autocast_disabled(q):
        if normalize == 'rows':
            out = row_normalized(q, landmarks, v, added, num_iters, solver)
        else:
            operator = softpp if normalize else soft
            out = operator(q, landmarks, v, added, num_iters, solver, factor)
        return out.to(v.dtype)


def soft(
    q: Tensor,
    landmarks: Tensor,
    v: Tensor,
    ridge: float,
    num_iters: int,
    solver: str,
    factor: Optional[float] = None,
) -> Tensor:
    r"""Compute SOFT, :math:`P^T A^\dagger P V` times a factor, of the arguments of
    :func:`softmax_free_attention`; ``ridge`` is what is added to A's diagonal."""
    q, landmarks, v = _for_products(q, landmarks, v)
    a = gaussian_kernel(landmarks)  # (B, h, m, m)
    to_landmarks, to_tokens = kernel_products(landmarks, q)  # P, P^T
    alpha = soft_alpha(a.sum(-1, keepdim=True), ridge)
    y = _invert(_add_ridge(a, ridge), to_landmarks(v), num_iters, solver, alpha)
    return to_tokens(_scaled(y, factor).to(v.dtype))


def softpp(
    q: Tensor,
    landmarks: Tensor,
    v: Tensor,
    ridge: float,
    num_iters: int,
    solver: str,
    factor: Optional[float] = None,
) -> Tensor:
    r"""Compute SOFT++, :math:`P^T D^{-1/2} A^\dagger D^{-1/2} P V` with :math:`D =
    diag(A 1)`, times a factor; see :func:`soft`."""
    q, landmarks, v = _for_products(q, landmarks, v)
    a = gaussian_kernel(landmarks)
    to_landmarks, to_tokens = kernel_products(landmarks, q)
    scale = a.sum(-1, keepdim=True).rsqrt()
    x = scale * to_landmarks(v)
    y = scale * _invert(_add_ridge(a, ridge), x, num_iters, solver)
    return to_tokens(_scaled(y, factor).to(v.dtype))


def row_normalized(
    q: Tensor, landmarks: Tensor, v: Tensor, ridge: float, num_iters: int, solver: str
) -> Tensor:
    r""":math:`\hat K V / \hat K 1` with :math:`\hat K = P^T A^\dagger P`, ours; see
    :func:`soft`."""
    q, v = at_least_float32(q, v)  # half precision does not hold sums over all tokens
    v = pad(v, (0, 1), value=1.0)  # the last column becomes the row sums
    q, landmarks, v = _for_products(q, landmarks, v)
    if is_exported() or landmarks.size(2) < FEW:
        a, kernel, *_ = landmark_kernels(landmarks, q, ridge)
        with full_precision(v):
            y = _invert(a, sum_over_tokens(kernel, v), num_iters, solver)
            return divide_by_row_sums(to_every_token(kernel, y))
    a = _add_ridge(gaussian_kernel(landmarks), ridge)
    to_landmarks, to_tokens = kernel_products(landmarks, q)
    y = _invert(a, to_landmarks(v), num_iters, solver)
    return divide_by_row_sums(to_tokens(y.to(v.dtype)))


def _for_products(q: Tensor, landmarks: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    dtype = product_dtype(q, v)
    return q.to(dtype), landmarks.to(dtype), v.to(dtype)


def _add_ridge(a: Tensor, ridge: float) -> Tensor:
    if not ridge:
        return a
    return a + ridge * torch.eye(a.size(-1), device=a.device, dtype=a.dtype)


def _invert(
    a: Tensor, x: Tensor, num_iters: int, solver: str, alpha: Optional[Tensor] = None
) -> Tensor:
    """Return the inverse of A times x, (B, h, m, k)."""
    if solver == 'cholesky':
        return cholesky_solve(a, x)
    return newton_pinv(a, num_iters, x, alpha=alpha, solver=solver)


def _scaled(y: Tensor, factor: Optional[float]) -> Tensor:
    return y if factor is None else y * factor


def divide_by_row_sums(sums: Tensor) -> Tensor:
    r"""Compute :math:`\hat K V / z` with :math:`z = \hat K 1`.

    Rounding, and tokens far from all landmarks, can make a row sum 0 or less. Its mean
    :math:`1^T \hat K 1 / N` cannot be negative, since the kernel is positive
    semi-definite; no row is divided by less than a hundredth of it. So rows of such
    tokens fade out, instead of growing without limit.

    Args:
        sums (Tensor): :math:`\hat K (V, 1)`, (B, h, N, d + 1), in float32 or more.

    Returns:
        Tensor: (B, h, N, d); zero where the kernel is.
    """
    products, z = sums.split([sums.size(-1) - 1, 1], -1)
    least = _LEAST_ROW_SUM * z.mean(-2, keepdim=True)
    # a quotient of less may have a gradient beyond float32
    least = least.clamp(min=torch.finfo(z.dtype).tiny ** 0.5)
    return products / torch.maximum(z, least)


def soft_alpha(degree: Tensor, ridge: float) -> Tensor:
    """Step size of SOFT, (B, h, m, 1) to (B, h, 1, 1)."""
    norm = degree.detach().amax(-2, keepdim=True)
    # the second bound keeps alpha * lambda_max^2 below 2 at any ridge
    return torch.minimum(1.8 / norm**2, 1.99 / (norm + ridge) ** 2)
