"""Baseline of softmax-free attention: matrices in memory, the literal inverse.

It is SOFT++'s operator, written from its equations, in float32 or more, and shares
nothing with the functions that are measured beside it.

Legend: B batch, h heads, N tokens, m landmarks, d head dim.
"""

from unittest.mock import patch

import torch

from mmlinattn.functional.precision import at_least_float32, autocast_disabled


def explicit_attention(q, landmarks, v, num_iters=20, **kwargs):
    """Compute SOFT++ as the official code computes it.

    Every term of the distances is an (N, m) product, the kernel matrix meets
    the inverse before the values do, and autograd goes through the Newton loop.

    Args:
        q (Tensor): (B, h, N, d), divided by d^(1/4).
        landmarks (Tensor): (B, h, m, d).
        v (Tensor): (B, h, N, d).
        num_iters (int): Newton-Raphson steps.
        **kwargs: Ignored, what models say of SOFT++ besides.

    Returns:
        Tensor: (B, h, N, d), in the dtype of ``v``.
    """
    dtype = v.dtype
    with autocast_disabled(q):
        q, landmarks, v = at_least_float32(q, landmarks, v)
        p = distances(q, landmarks).div(-2).exp()  # (B, h, N, m)
        a = distances(landmarks, landmarks).div(-2).exp()  # (B, h, m, m)
        scale = 1 / a.sum(-1, keepdim=True).sqrt()
        inverse = step_size(a) * a
        for _ in range(num_iters):
            inverse = 2 * inverse - inverse @ a @ inverse
        inverse = scale * inverse * scale.mT
        return ((p @ inverse) @ (p.mT @ v)).to(dtype)


def explicit_in_models():
    """Return a context in which normalized models use :func:`explicit_attention`."""
    name = 'mmlinattn.models.attentions.softmax_free.softmax_free_attention'
    return patch(name, explicit_attention)


def distances(q, k):
    """Return squared distances (B, h, N, m), each of three terms a matrix product."""
    squares_q = q**2 @ torch.ones_like(k).mT
    squares_k = torch.ones_like(q) @ (k**2).mT
    return squares_q + squares_k - 2 * (q @ k.mT)


def kernel_matrix(q, k):
    """Compute the Gaussian kernel (B, h, N, m) from one matrix product."""
    squares_q = q.square().sum(-1, keepdim=True) / 2
    squares_k = k.square().sum(-1).unsqueeze(-2) / 2
    return (q @ k.mT - squares_q - squares_k).exp()


def step_size(a):
    """SOFT++'s step, one for the whole batch: the first of ten halvings that
    brings the residual's norm to 1.01."""
    eye = torch.eye(a.size(-1), device=a.device, dtype=a.dtype)
    step = 2 / a.sum(-1).amax() ** 2
    for _ in range(10):
        if (eye - a @ (step * a)).abs().sum(-2).amax() <= 1.01:
            break
        step = step / 2
    return step
