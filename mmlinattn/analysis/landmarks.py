"""What landmarks of softmax-free attention see, and how much of the kernel they know.

Legend: B batch, h heads, N tokens, m landmarks.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mmlinattn.functional import cholesky_solve, gaussian_kernel
from mmlinattn.functional.precision import at_least_float32, autocast_disabled

from .recording import AttentionCall


def landmark_weights(call: AttentionCall, averages: bool = False) -> Tensor:
    r"""Return weights that landmarks give to tokens,

    .. math:: w_{aj} = \frac{\kappa(l_a, q_j)}{\sum_{j'} \kappa(l_a, q_{j'})}, \quad
        \kappa(l, q) = e^{-\|l - q\|^2 / 2}

    for landmarks :math:`l_a` and tokens :math:`q_j`, the queries and keys. Each
    landmark sums up the values with them. The distance of a landmark to all tokens
    cancels: what counts is :math:`l_a^T q_j - \|q_j\|^2 / 2`.

    Args:
        call (AttentionCall): Of a :class:`~mmlinattn.models.SoftmaxFreeAttention`, from
            :func:`watch`.
        averages (bool): Means of the tokens in the cells of the landmarks' grid, in
            place of the attention's landmarks.

    Returns:
        Tensor: (B, h, m, N), in float32 or more, without a gradient; a row sums to 1.

    Raises:
        ValueError: If the attention has no landmarks.
    """
    tokens, landmarks = _tokens_and_landmarks(call, averages)
    logits = landmarks @ tokens.mT - tokens.square().sum(-1).unsqueeze(-2) / 2
    return logits.softmax(-1)


def _tokens_and_landmarks(call: AttentionCall, averages: bool) -> tuple[Tensor, Tensor]:
    """Scaled queries (B, h, N, d) and landmarks (B, h, m, d), in float32 or more."""
    from mmlinattn.models import SoftmaxFreeAttention
    from mmlinattn.models.attentions.landmarks import pool_map

    attention = call.module
    if not isinstance(attention, SoftmaxFreeAttention):
        raise ValueError(
            f'{call.name} has no landmarks of softmax-free attention: it is '
            f'{type(attention).__name__}, not SoftmaxFreeAttention'
        )
    with torch.no_grad(), autocast_disabled(call.q):
        (q,) = at_least_float32(call.q)
        q = attention.split_heads(q) / attention.head_dims**0.25
        if averages:
            return q, pool_map(q, call.hw_shape, attention.sampler.grid(call.hw_shape))
        return q, attention.sampler(q, call.hw_shape)


def nystroem_diagonal(call: AttentionCall) -> Tensor:
    r"""Return weights of tokens for themselves, before rows are divided by their sums:

    .. math:: \hat K_{ii} = p_i^T (A + \rho m I)^{-1} p_i

    for the kernels :math:`p_i` of token i with the landmarks and A of the landmarks.
    In the kernel that :math:`\hat K` stands for, each is 1. Near 0, a token is far
    from all landmarks, and :math:`\hat K` is no approximation of that kernel; with an
    ``exact_window``, such tokens attend to themselves or their window.

    Args:
        call (AttentionCall): Of the attention of
            :class:`~mmlinattn.models.LinearSOFTPlusPlus`, from :func:`watch`.

    Returns:
        Tensor: (B, h, N), values in [0, 1], but for rounding; without a gradient.

    Raises:
        ValueError: If the attention is not softmax-free with ``solver='cholesky'`` and
            ``relative_ridge=True``.
    """
    attention = call.module
    solver = getattr(attention, 'solver', None)
    if solver != 'cholesky' or not getattr(attention, 'relative_ridge', False):
        raise ValueError(
            f'{call.name} is no attention of LinearSOFTPlusPlus: it needs '
            "solver='cholesky' and relative_ridge=True"
        )
    q, landmarks = _tokens_and_landmarks(call, averages=False)
    with torch.no_grad(), autocast_disabled(q):
        a, p = gaussian_kernel(landmarks), gaussian_kernel(landmarks, q)
        ridge = attention.ridge * a.size(-1)
        a.diagonal(dim1=-2, dim2=-1).add_(ridge)
        return (p * cholesky_solve(a, p)).sum(-2)
