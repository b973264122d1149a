"""Softmax-free attention of SOFT and SOFT++.

Legend: B batch, h heads, N tokens, m landmarks, d head dim.
"""

from typing import Any, Optional, Union

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..precision import autocast_disabled
from .inverse import check_solver, cholesky_solve, newton_pinv
from .kernel import gaussian_kernel, kernel_products, product_dtype


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
        trained_size (tuple[int], optional): Numbers of tokens and of landmarks of the
            training, whose :func:`size_factor` multiplies the result.

    Returns:
        Tensor: (B, h, N, d), in the dtype of ``v``. A and its inverse are in float32 or
            more, even under autocast and TF32. So are P's products, except in half
            precision on a GPU without gradients (:func:`~.kernel.product_dtype`).

    Raises:
        ValueError: If ``normalize`` is unknown; see also :func:`check_solver`.
    """
    check_normalize(normalize)
    check_solver(solver, num_iters, ridge)
    with autocast_disabled(q):
        given, dtype = v.dtype, product_dtype(q, v)
        q, landmarks, v = q.to(dtype), landmarks.to(dtype), v.to(dtype)
        num_tokens, num_landmarks = q.size(2), landmarks.size(2)
        a = gaussian_kernel(landmarks)  # (B, h, m, m)
        degree = a.sum(-1, keepdim=True)
        if ridge:
            ridge = num_landmarks * ridge if relative_ridge else ridge
            a = a + ridge * torch.eye(a.size(-1), device=a.device, dtype=a.dtype)
        if normalize == 'rows':
            v = pad(v, (0, 1), value=1.0)  # the last column becomes the row sums
        scale = degree.rsqrt() if normalize is True else None
        to_landmarks, to_tokens = kernel_products(landmarks, q)  # P, P^T
        x = to_landmarks(v)
        x = x if scale is None else scale * x
        if solver == 'cholesky':
            y = cholesky_solve(a, x)
        else:
            alpha = None if normalize else soft_alpha(degree, ridge)
            y = newton_pinv(a, num_iters, x, alpha=alpha, solver=solver)
        y = y if scale is None else scale * y
        if normalize == 'rows':  # float16 does not hold sums over all tokens
            y = y / num_tokens
        elif trained_size is not None:
            size = num_tokens, num_landmarks
            y = y * size_factor(size, trained_size, bool(normalize))
        out = to_tokens(y.to(dtype))
        return (divide_by_row_sums(out) if normalize == 'rows' else out).to(given)


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
    least = least.clamp(min=torch.finfo(z.dtype).tiny)
    return sums[..., :-1] / torch.maximum(z, least)


def size_factor(
    size: tuple[Any, Any], trained: tuple[int, int], normalize: bool
) -> Any:
    r"""Keeps the norm of SOFT and SOFT++ at sizes that they were not trained at.

    Whatever m is, the norm of :math:`\hat K` is that of the kernel of all tokens, which
    is proportional to N: the factor is :math:`N_0 / N`. The norm of SOFT++ is that over
    m: :math:`(N_0 / N)(m / m_0)`.

    Args:
        size (tuple[int]): (N, m).
        trained (tuple[int]): (N_0, m_0).
        normalize (bool): SOFT++ if True, SOFT if False.
    """
    factor = trained[0] / size[0]
    return factor * size[1] / trained[1] if normalize else factor


def check_normalize(normalize: Union[bool, str]) -> None:
    """Checks the kind of normalization.

    Raises:
        ValueError: If it is not True, False or 'rows'.
    """
    if normalize not in (True, False, 'rows'):
        raise ValueError(
            "normalization must be True (by landmarks), 'rows' or False, "
            f'got {normalize!r}'
        )


def soft_alpha(degree: Tensor, ridge: float) -> Tensor:
    """Step size of SOFT, (B, h, m, 1) to (B, h, 1, 1)."""
    norm = degree.detach().amax(-2, keepdim=True)
    # the second bound keeps alpha * lambda_max^2 below 2 at any ridge
    return torch.minimum(1.8 / norm**2, 1.99 / (norm + ridge) ** 2)
