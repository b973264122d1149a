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
    r"""Output of an attention, and how it depends on the values.

    ``attend`` is linear in the values: :math:`o_{ic} = \sum_j A^c_{ij} v_{jc}`. Row i
    of A is the gradient of output i with respect to the values. Where all channels
    of a head have one matrix, a backward pass gives as many rows as the head has
    channels; otherwise it gives one, the mean over the channels. AttnScale is
    included, as in ``attend``. Time and memory are linear in N for a linear
    attention.

    Args:
        attention (BaseAttention): In eval mode.
        q (Tensor): What ``attention.attend`` takes, (B, N, C).
        k (Tensor): (B, M, C).
        v (Tensor): (B, M, C).
        hw_shape (tuple[int]): (H, W).

    Raises:
        ValueError: If the attention is in training mode.
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
        self._attention = attention
        with torch.enable_grad():
            self._v = v.detach().requires_grad_()
            self._out = attention.attend(q.detach(), k.detach(), self._v, hw_shape)

    @property
    def out(self) -> Tensor:
        """What ``attend`` returned, (B, N, C), without a graph."""
        return self._out.detach()

    def rows(self, queries: Sequence[int]) -> Tensor:
        """Weights that some queries give to all keys.

        Args:
            queries (Sequence[int]): Indices of queries, in 0...N - 1.

        Returns:
            Tensor: (B, h, number of queries, M).

        Raises:
            ValueError: If an index is out of range.
        """
        num_queries = self._out.size(1)
        wrong = [i for i in queries if not 0 <= i < num_queries]
        if wrong:
            raise ValueError(f'queries must be in 0...{num_queries - 1}, got {wrong}')
        attention, out, v = self._attention, self._out, self._v
        heads = attention.dims_of_heads
        take = _shared_rows if attention.one_matrix_per_head else _mean_row
        step = min(heads) if attention.one_matrix_per_head else 1
        chunks = [queries[i : i + step] for i in range(0, len(queries), step)]
        rows = [take(out, v, heads, chunk) for chunk in chunks]
        return torch.cat(rows or [v.new_zeros(len(v), len(heads), 0, v.size(1))], 2)


def attention_rows(
    attention: BaseAttention,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    hw_shape: tuple[int, int],
    queries: Sequence[int],
) -> Tensor:
    """Weights that some queries give to all keys, see :class:`AttentionProbe`.

    Args:
        attention (BaseAttention): In eval mode.
        q (Tensor): What ``attention.attend`` takes, (B, N, C).
        k (Tensor): (B, M, C).
        v (Tensor): (B, M, C).
        hw_shape (tuple[int]): (H, W).
        queries (Sequence[int]): Indices of queries, in 0...N - 1.

    Returns:
        Tensor: (B, h, number of queries, M).

    Raises:
        ValueError: If an index is out of range, or the attention is in training
            mode.
    """
    return AttentionProbe(attention, q, k, v, hw_shape).rows(queries)


def _shared_rows(
    out: Tensor, v: Tensor, heads: Sequence[int], queries: Sequence[int]
) -> Tensor:
    """One row per channel of a head, (B, h, number of queries, M)."""
    probe = torch.zeros_like(out)
    for head in probe.split(heads, -1):
        head[:, queries, range(len(queries))] = 1
    (grad,) = torch.autograd.grad(out, v, probe, retain_graph=True)
    parts = grad.transpose(-2, -1).split(heads, -2)
    return torch.stack([head[:, : len(queries)] for head in parts], 1)


def _mean_row(
    out: Tensor, v: Tensor, heads: Sequence[int], queries: Sequence[int]
) -> Tensor:
    """One row, the mean over the channels of a head, (B, h, 1, M)."""
    probe = torch.zeros_like(out)
    probe[:, queries] = 1
    (grad,) = torch.autograd.grad(out, v, probe, retain_graph=True)
    parts = grad.split(heads, -1)
    return torch.stack([head.mean(-1, keepdim=True).mT for head in parts], 1)
