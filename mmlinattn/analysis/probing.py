"""Rows of any attention, without its N x N matrix.

Legend: B batch, h heads, N queries, M keys, C channels, d channels of a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from mmlinattn.models.attentions.base import BaseAttention


class AttentionProbe:
    """Output of an attention, and its dependence on the values.

    See :func:`attention_rows` for the arguments and errors.
    """

    def __init__(
        self,
        attention: BaseAttention,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        hw_shape: tuple[int, int],
    ) -> None:
        if attention.training:
            raise ValueError(
                'attention must be in eval mode: dropout would hide weights; call '
                'eval()'
            )
        if not attention.linear_in_values:
            raise ValueError(
                f'{type(attention).__name__} has no attention matrix: its output is '
                'not linear in the values'
            )
        self._attention = attention
        with torch.enable_grad():
            self._v = v.detach().requires_grad_()
            self._out = attention.attend(q.detach(), k.detach(), self._v, hw_shape)

    @property
    def out(self) -> Tensor:
        """The output of ``attend``, (B, N, C), without a graph."""
        return self._out.detach()

    def rows(self, queries: Sequence[int]) -> Tensor:
        """See :func:`attention_rows`."""
        out, v = self._out, self._v
        wrong = [i for i in queries if not 0 <= i < out.size(1)]
        if wrong:
            raise ValueError(f'queries must be in 0...{out.size(1) - 1}, got {wrong}')
        heads = self._attention.dims_of_heads
        shared = self._attention.one_matrix_per_head
        rows = [v.new_zeros(len(v), len(heads), 0, v.size(1))]
        step = min(heads) if shared else 1
        for i in range(0, len(queries), step):
            chunk = queries[i : i + step]
            probe = torch.zeros_like(out)
            for head in probe.split(heads, -1):
                # a channel for each query, or all channels for one
                head[:, chunk, range(len(chunk)) if shared else slice(None)] = 1
            (grad,) = torch.autograd.grad(out, v, probe, retain_graph=True)
            parts = [
                head[..., : len(chunk)] if shared else head.mean(-1, keepdim=True)
                for head in grad.split(heads, -1)
            ]
            rows.append(torch.stack(parts, 1).mT)
        return torch.cat(rows, 2)


def attention_rows(
    attention: BaseAttention,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    hw_shape: tuple[int, int],
    queries: Sequence[int],
) -> Tensor:
    r"""Weights that some queries give to all keys.

    ``attend`` is linear in the values: :math:`o_{ic} = \sum_j A^c_{ij} v_{jc}`. Row i
    of A is the gradient of output i with respect to the values. Where all channels
    of a head have one matrix, a backward pass gives as many rows as the head has
    channels; otherwise it gives one, the mean over the channels. AttnScale is
    included, as in ``attend``. Time and memory are linear in N for a linear
    attention.

    Args:
        attention (BaseAttention): In eval mode.
        q (Tensor): Queries of ``attention.attend``, (B, N, C).
        k (Tensor): (B, M, C).
        v (Tensor): (B, M, C).
        hw_shape (tuple[int]): (H, W).
        queries (Sequence[int]): Indices of queries, in 0...N - 1.

    Returns:
        Tensor: (B, h, number of queries, M).

    Raises:
        ValueError: If an index is out of range, or the attention is in training
            mode or not linear in its values.
    """
    return AttentionProbe(attention, q, k, v, hw_shape).rows(queries)
