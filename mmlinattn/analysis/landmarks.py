"""How much of the kernel the landmarks of the linear SOFT++ know.

Legend: B batch, h heads, N tokens, m landmarks.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mmlinattn.functional import cholesky_solve, gaussian_kernel
from mmlinattn.functional.precision import at_least_float32, autocast_disabled

from .recording import AttentionCall


def nystroem_diagonal(call: AttentionCall) -> Tensor:
    r"""Weights of tokens for themselves, before rows are divided by their sums:

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
    with torch.no_grad(), autocast_disabled(call.q):
        (q,) = at_least_float32(call.q)
        q = attention.split_heads(q) / attention.head_dims**0.25
        landmarks = attention.sampler(q, call.hw_shape)
        a, p = gaussian_kernel(landmarks), gaussian_kernel(landmarks, q)
        ridge = attention.ridge * a.size(-1)
        a.diagonal(dim1=-2, dim2=-1).add_(ridge)
        return (p * cholesky_solve(a, p)).sum(-2)
