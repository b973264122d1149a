"""Softmax-free attention of SOFT and SOFT++.

Legend: B batch, h heads, N tokens, m landmarks, d head dim.
"""

from typing import Any, Optional, Union

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..precision import at_least_float32, autocast_disabled
from ..tracing import is_exported
from .inverse import FEW, check_solver, cholesky_solve, newton_pinv
from .kernel import gaussian_kernel, kernel_products, landmark_products, product_dtype

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
    r"""Nystroem attention on a Gaussian kernel, without softmax.

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
    by_rows = normalize == 'rows'
    with autocast_disabled(q):
        given, num_landmarks = v.dtype, landmarks.size(2)
        if by_rows:  # half precision does not hold sums over all tokens
            q, v = at_least_float32(q, v)
            v = pad(v, (0, 1), value=1.0)  # the last column becomes the row sums
        dtype = product_dtype(q, v)
        q, landmarks, v = q.to(dtype), landmarks.to(dtype), v.to(dtype)
        added = num_landmarks * ridge if relative_ridge else ridge
        few = by_rows and (is_exported() or num_landmarks < FEW)
        if few:
            a, to_landmarks, to_tokens = landmark_products(landmarks, q, added)
        else:
            a = gaussian_kernel(landmarks)  # (B, h, m, m)
            to_landmarks, to_tokens = kernel_products(landmarks, q)  # P, P^T
        degree: Any = None if by_rows else a.sum(-1, keepdim=True)
        scale = degree.rsqrt() if normalize is True else 1.0
        if ridge and not few:
            a = a + added * torch.eye(a.size(-1), device=a.device, dtype=a.dtype)
        x = to_landmarks(v)
        x = x if by_rows else scale * x
        if solver == 'cholesky':
            y = cholesky_solve(a, x)
        else:
            alpha = None if normalize else soft_alpha(degree, added)
            y = newton_pinv(a, num_iters, x, alpha=alpha, solver=solver)
        y = y if by_rows else scale * y
        if trained_size is not None and not by_rows:
            more = num_landmarks / trained_size[1] if normalize else 1.0
            y = y * (trained_size[0] / q.size(2) * more)
        out = to_tokens(y.to(dtype))
        return (divide_by_row_sums(out) if by_rows else out).to(given)


def divide_by_row_sums(sums: Tensor) -> Tensor:
    r"""Computes :math:`\hat K V / z` with :math:`z = \hat K 1`.

    Rounding, and tokens far from all landmarks, can make a row sum 0 or less. Its mean
    :math:`1^T \hat K 1 / N` cannot be negative, since the kernel is positive
    semi-definite; no row is divided by less than a hundredth of it. So rows of such
    tokens fade out, instead of growing without limit.

    Args:
        sums (Tensor): :math:`\hat K (V, 1)`, (B, h, N, d + 1), in float32 or more.

    Returns:
        Tensor: (B, h, N, d); zero where the kernel is.
    """
    z = sums[..., -1:]
    least = _LEAST_ROW_SUM * z.mean(-2, keepdim=True)
    # a quotient of less may have a gradient beyond float32
    least = least.clamp(min=torch.finfo(z.dtype).tiny ** 0.5)
    return sums[..., :-1] / torch.maximum(z, least)


def soft_alpha(degree: Tensor, ridge: float) -> Tensor:
    """Step size of SOFT, (B, h, m, 1) to (B, h, 1, 1)."""
    norm = degree.detach().amax(-2, keepdim=True)
    # the second bound keeps alpha * lambda_max^2 below 2 at any ridge
    return torch.minimum(1.8 / norm**2, 1.99 / (norm + ridge) ** 2)
