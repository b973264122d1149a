"""Nystroemformer: the Nystroem approximation of softmax attention.

Legend: ... batch and heads, B batch, h heads, N tokens, m landmarks, d head dim.
"""

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from .precision import at_least_float32, autocast_disabled
from .tokens import few_to_tokens_attention


def iterative_pinv(a: Tensor, num_iters: int = 6) -> Tensor:
    r"""Compute the pseudo-inverse by the third-order iteration of *Nystroemformer: A
    Nystroem-Based Algorithm for Approximating Self-Attention* (arXiv 2102.03902).

    :math:`Z_0 = A^T / (\|A\|_1 \|A\|_\infty)`, :math:`Z_{j+1} = \frac14 Z_j
    (13 I - A Z_j (15 I - A Z_j (7 I - A Z_j)))`. The norms are those of each
    matrix, so that an image's result does not depend on its batch.

    Args:
        a (Tensor): (..., m, m), float32 or more.
        num_iters (int): Steps.

    Returns:
        Tensor: (..., m, m).
    """
    norms = [a.abs().sum(dim, keepdim=True).amax((-2, -1), True) for dim in (-2, -1)]
    eye = torch.eye(a.size(-1), device=a.device, dtype=a.dtype)
    z = a.transpose(-2, -1) / (norms[0] * norms[1])
    for _ in range(num_iters):
        az = a @ z
        z = z @ (13 * eye - az @ (15 * eye - az @ (7 * eye - az))) / 4
    return z


def nystrom_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    q_landmarks: Tensor,
    k_landmarks: Tensor,
    num_iters: int = 6,
) -> Tensor:
    r"""Compute softmax attention through landmarks.

    :math:`\sigma(Q \tilde K^T / \sqrt d)\;\sigma(\tilde Q \tilde K^T /
    \sqrt d)^\dagger\;\sigma(\tilde Q K^T / \sqrt d) V` (arXiv 2102.03902).
    Products run from right to left, so the cost is linear in N.

    Args:
        q, k, v (Tensor): (B, h, N, d) each. Half precision is computed in float32,
            with or without autocast: the pseudo-inverse enlarges rounding errors.
        q_landmarks, k_landmarks (Tensor): (B, h, m, d) each.
        num_iters (int): Steps of :func:`iterative_pinv`.

    Returns:
        Tensor: (B, h, N, d), in the dtype of ``v``.
    """
    dtype = v.dtype
    with autocast_disabled(q):
        q, k, v, q_landmarks, k_landmarks = at_least_float32(
            q, k, v, q_landmarks, k_landmarks
        )
        scaled = q_landmarks * q.size(-1) ** -0.5
        a = (scaled @ k_landmarks.transpose(-2, -1)).softmax(-1)
        x = few_to_tokens_attention(q_landmarks, k, v)  # (B, h, m, d)
        y = iterative_pinv(a, num_iters) @ x
        return scaled_dot_product_attention(q, k_landmarks, y).to(dtype)
