"""Softmax-free attention of SOFT and SOFT++.

Legend: B batch, h heads, N tokens, m landmarks, d head dim.
"""

import torch
from torch import Tensor

from ..precision import autocast_disabled
from .inverse import check_solver, cholesky_solve, newton_pinv
from .kernel import gaussian_kernel, kernel_products, product_dtype


def softmax_free_attention(
    q: Tensor,
    landmarks: Tensor,
    v: Tensor,
    normalize: bool = True,
    num_iters: int = 20,
    ridge: float = 0.0,
    solver: str = 'auto',
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
        solver (str): 'newton', 'polynomial' and 'spectral' compute the same operator
            (:func:`newton_pinv`); 'auto' picks one of them by device, number of
            landmarks and number of steps only. 'cholesky' computes another one, the
            inverse of A + ridge * I.

    Returns:
        Tensor: (B, h, N, d), in the dtype of ``v``. A and its inverse are in float32 or
            more, even under autocast and TF32. So are P's products, except in half
            precision on a GPU without gradients (:func:`~.kernel.product_dtype`).

    Raises:
        ValueError: See :func:`check_solver`.
    """
    check_solver(solver, num_iters, ridge)
    with autocast_disabled(q):
        given, dtype = v.dtype, product_dtype(q, v)
        q, landmarks, v = q.to(dtype), landmarks.to(dtype), v.to(dtype)
        a = gaussian_kernel(landmarks)  # (B, h, m, m)
        degree = a.sum(-1, keepdim=True)
        if ridge:
            a = a + ridge * torch.eye(a.size(-1), device=a.device, dtype=a.dtype)
        scale, alpha = degree.rsqrt(), None
        if not normalize:
            scale, alpha = torch.ones_like(degree), soft_alpha(degree, ridge)
        to_landmarks, to_tokens = kernel_products(landmarks, q)  # P, P^T
        x = scale * to_landmarks(v)
        if solver == 'cholesky':
            y = cholesky_solve(a, x)
        else:
            y = newton_pinv(a, num_iters, x, alpha=alpha, solver=solver)
        return to_tokens((scale * y).to(dtype)).to(given)


def soft_alpha(degree: Tensor, ridge: float) -> Tensor:
    """Step size of SOFT, (B, h, m, 1) to (B, h, 1, 1)."""
    norm = degree.detach().amax(-2, keepdim=True)
    # the second bound keeps alpha * lambda_max^2 below 2 at any ridge
    return torch.minimum(1.8 / norm**2, 1.99 / (norm + ridge) ** 2)
