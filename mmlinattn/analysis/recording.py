"""Attentions and blocks of a model while it runs, and rows of any attention.

Legend: B batch, h heads, (H, W) map, N queries, M keys, C channels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

import torch
from torch import Tensor, nn

from mmlinattn.functional import crop_map

# Functions import these: the measures of this package need torch alone.
if TYPE_CHECKING:
    from mmlinattn.models import TransformerBlock
    from mmlinattn.models.attentions.base import BaseAttention


def attention_rows(
    attention: BaseAttention,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    hw_shape: tuple[int, int],
    queries: Sequence[int],
) -> Tensor:
    r"""Return weights that some queries give to all keys, without the N x M matrix.

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
    if attention.training:
        raise ValueError(
            'attention must be in eval mode: dropout would hide weights; call eval()'
        )
    if not attention.linear_in_values:
        raise ValueError(
            f'{type(attention).__name__} has no attention matrix: its output is not '
            'linear in the values'
        )
    wrong = [i for i in queries if not 0 <= i < q.size(1)]
    if wrong:
        raise ValueError(f'queries must be in 0...{q.size(1) - 1}, got {wrong}')
    with torch.enable_grad():
        v = v.detach().requires_grad_()
        # the class's own method: `watch` replaces that of the module
        attend = type(attention).attend
        out = attend(attention, q.detach(), k.detach(), v, hw_shape)
    heads, shared = attention.dims_of_heads, attention.one_matrix_per_head
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


@dataclass(frozen=True, eq=False)
class AttentionCall:
    """One call of an attention.

    Attributes:
        name, module: The attention, by its name in the model.
        q, k, v (Tensor): What ``attend`` got, (B, N, C), (B, M, C) and (B, M, C).
        hw_shape (tuple[int]): (H, W) of ``attend``, padded to whole windows where
            there are windows.
        map_shape (tuple[int]): (H, W) of the module's own map.
    """

    name: str
    module: BaseAttention
    q: Tensor
    k: Tensor
    v: Tensor
    hw_shape: tuple[int, int]
    map_shape: tuple[int, int]

    @property
    def num_extra(self) -> int:
        """Tokens besides the map's, which come first."""
        return self.k.size(1) - math.prod(self.module.key_shape(self.hw_shape))

    @property
    def key_shape(self) -> tuple[int, int]:
        """Size of the map of keys, without the padding of windows."""
        return self.module.key_shape(self.map_shape)

    def query_at(self, x: float, y: float) -> int:
        """Return the index of the query at a position of the image, x from the left, 0,
        to the right, 1, and y from the top, 0, to the bottom, 1; or of the only
        query."""
        if self.q.size(1) == 1:  # class attention
            return 0
        height, width = self.map_shape
        row = min(int(y * height), height - 1)
        column = min(int(x * width), width - 1)
        return self.num_extra + row * self.hw_shape[1] + column

    def rows(self, queries: Sequence[int]) -> Tensor:
        """Return weights that some queries, see :meth:`query_at`, give to the keys of
        the map: (B, h, number of queries, keys of ``key_shape``)."""
        rows = attention_rows(
            self.module, self.q, self.k, self.v, self.hw_shape, queries
        )[..., self.num_extra :]
        padded_shape = self.module.key_shape(self.hw_shape)
        cropped = crop_map(rows.unsqueeze(-1), padded_shape, self.key_shape)
        return cropped.squeeze(-1)


class BlockCall(NamedTuple):
    """One call of a transformer block: its name in the model, its output (B, N, C), and
    (H, W) of its map."""

    name: str
    module: TransformerBlock
    tokens: Tensor
    hw_shape: tuple[int, int]


@contextmanager
def watch(
    model: nn.Module,
    on_attention: Callable[[AttentionCall], Any] | None = None,
    on_block: Callable[[BlockCall], Any] | None = None,
) -> Iterator[None]:
    """Return a context in which functions are called with a model's attentions and
    blocks.

    Nothing is kept unless a function keeps it. Blocks of class attention are ignored,
    because they change one token only.

    Args:
        model (nn.Module): The model.
        on_attention (callable, optional): Called before each attention is computed.
        on_block (callable, optional): Called after each block.

    Raises:
        ValueError: If the model has no attention of mmlinattn.
    """
    attentions = attentions_of(model)
    with ExitStack() as stack:
        if on_attention:
            show = partial(_show, on_attention)
            for name, module in attentions.items():
                intercept(stack, name, module, show)
        for name, block in blocks_of(model).items() if on_block else ():
            _watch_block(stack, name, block, on_block)
        yield


def _show(
    visit: Callable[[AttentionCall], Any],
    call: AttentionCall,
    compute: Callable[[], Tensor],
) -> Tensor:
    """Compute a call after a function has seen it."""
    visit(call)
    return compute()


def intercept(
    stack: ExitStack,
    name: str,
    module: BaseAttention,
    around: Callable[[AttentionCall, Callable[[], Tensor]], Tensor],
) -> None:
    """Let a function answer each call of ``attend``, until the stack is closed. It gets
    the call, and a function that computes it."""
    shapes: list[Any] = []
    attend = module.attend

    def before(_module: nn.Module, args: Any, kwargs: Any) -> None:
        shapes.append(tuple(kwargs.get('hw_shape', args[-1])))

    def answered(q: Tensor, k: Tensor, v: Tensor, hw_shape: Any) -> Tensor:
        call = AttentionCall(name, module, q, k, v, tuple(hw_shape), shapes.pop())
        return around(call, lambda: attend(q, k, v, hw_shape))

    handle = module.register_forward_pre_hook(before, with_kwargs=True)
    stack.callback(handle.remove)
    own = module.__dict__.get('attend')
    module.__dict__['attend'] = answered
    if own is None:
        stack.callback(module.__dict__.pop, 'attend')
    else:  # contexts inside of each other
        stack.callback(module.__dict__.__setitem__, 'attend', own)


def _watch_block(
    stack: ExitStack, name: str, block: TransformerBlock, visit: Any
) -> None:
    """Show the output of each call of a block, until the stack is closed."""

    def after(_module: nn.Module, args: Any, kwargs: Any, out: Tensor) -> None:
        hw_shape = tuple(kwargs.get('hw_shape', args[-1]))
        visit(BlockCall(name=name, module=block, tokens=out, hw_shape=hw_shape))

    handle = block.register_forward_hook(after, with_kwargs=True)
    stack.callback(handle.remove)


def attentions_of(model: nn.Module) -> dict[str, BaseAttention]:
    """Return attentions of mmlinattn in a model, by name, in their order.

    Raises:
        ValueError: If it has none.
    """
    from mmlinattn.models import BaseAttention

    attentions = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, BaseAttention)
    }
    if not attentions:
        raise ValueError(
            f'{type(model).__name__} has no attention of mmlinattn: its backbone '
            'must be one of mmlinattn, such as mmlinattn.SOFTPlusPlus'
        )
    return attentions


def blocks_of(model: nn.Module) -> dict[str, TransformerBlock]:
    """Return transformer blocks that update all tokens, by name, in their order."""
    from mmlinattn.models import TransformerBlock
    from mmlinattn.models.attentions.talking_heads import ClassAttention

    return {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, TransformerBlock)
        and not isinstance(module.attn, ClassAttention)
    }
