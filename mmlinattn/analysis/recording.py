"""Records the attentions and blocks of a model while it runs.

Legend: B batch, (H, W) map, N tokens, C channels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

import torch
from torch import Tensor, nn

from mmlinattn.functional import crop_map

from .probing import AttentionProbe

# Functions import these: the measures of this package need torch alone.
if TYPE_CHECKING:
    from mmlinattn.models.attentions.base import BaseAttention
    from mmlinattn.models.layers import TransformerBlock


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

    @cached_property
    def probe(self) -> AttentionProbe:
        """The attention, computed once for all rows."""
        return AttentionProbe(self.module, self.q, self.k, self.v, self.hw_shape)

    @property
    def num_extra(self) -> int:
        """Tokens besides the map's, which come first."""
        return self.k.size(1) - math.prod(self.module.key_shape(self.hw_shape))

    @property
    def key_shape(self) -> tuple[int, int]:
        """Size of the map of keys, without the padding of windows."""
        return self.module.key_shape(self.map_shape)

    def query_at(self, x: float, y: float) -> int:
        """Index of the query at a position of the image, or of the only query.

        Args:
            x (float): From the left, 0, to the right, 1.
            y (float): From the top, 0, to the bottom, 1.
        """
        height, width = self.map_shape
        row = min(int(y * height), height - 1)
        return self._query(row * width + min(int(x * width), width - 1))

    def queries(self, limit: int) -> list[int]:
        """Indices of the map's queries, evenly spread if they exceed a limit."""
        num = 1 if self.q.size(1) == 1 else math.prod(self.map_shape)
        tokens = torch.linspace(0, num - 1, min(num, limit)).round().long().tolist()
        return [self._query(token) for token in tokens]

    def _query(self, token: int) -> int:
        """Index of the query of a token of the map."""
        if self.q.size(1) == 1:  # class attention
            return 0
        row, column = divmod(token, self.map_shape[1])
        return self.num_extra + row * self.hw_shape[1] + column

    def rows(self, queries: Sequence[int]) -> Tensor:
        """Weights that some queries give to the keys of the map.

        Args:
            queries (Sequence[int]): Indices, see :meth:`query_at`.

        Returns:
            Tensor: (B, h, number of queries, keys of ``key_shape``).
        """
        rows = self.probe.rows(queries)[..., self.num_extra :]
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
    """Context in which functions are called with a model's attentions and blocks.

    Nothing is kept unless a function keeps it. Blocks of class attention are left out,
    because they change one token only.

    Args:
        model (nn.Module): The model.
        on_attention (callable, optional): Called before each attention is computed.
        on_block (callable, optional): Called after each block.

    Raises:
        ValueError: If the model has no attention of mmlinattn.
    """
    attentions = attentions_of(model)

    def after(name: str, block: Any, args: Any, kwargs: Any, out: Tensor) -> None:
        hw_shape = tuple(kwargs.get('hw_shape', args[-1]))
        if on_block:
            on_block(BlockCall(name, block, out, hw_shape))

    with ExitStack() as stack:
        if on_attention:
            for name, module in attentions.items():
                _watch_attention(stack, name, module, on_attention)
        for name, block in blocks_of(model).items():
            hook = partial(after, name)
            handle = block.register_forward_hook(hook, with_kwargs=True)
            stack.callback(handle.remove)
        yield


def attentions_of(model: nn.Module) -> dict[str, BaseAttention]:
    """Attentions of mmlinattn in a model, by name, in their order.

    Raises:
        ValueError: If it has none.
    """
    from mmlinattn.models.attentions import BaseAttention

    found = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, BaseAttention)
    }
    if not found:
        raise ValueError(
            f'{type(model).__name__} has no attention of mmlinattn: its backbone '
            'must be one of mmlinattn, such as mmlinattn.SOFTPlusPlus'
        )
    return found


def blocks_of(model: nn.Module) -> dict[str, TransformerBlock]:
    """Transformer blocks that update all tokens, by name, in their order."""
    from mmlinattn.models.attentions.talking_heads import ClassAttention
    from mmlinattn.models.layers import TransformerBlock

    return {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, TransformerBlock)
        and not isinstance(module.attn, ClassAttention)
    }


def _watch_attention(
    stack: ExitStack,
    name: str,
    module: BaseAttention,
    visit: Callable[[AttentionCall], Any],
) -> None:
    shapes: list[Any] = []

    def before(_module: nn.Module, args: Any, kwargs: Any) -> None:
        shapes.append(kwargs.get('hw_shape', args[-1]))

    own: dict[str, Any] = module.__dict__
    attend = module.attend

    def watched(q: Tensor, k: Tensor, v: Tensor, hw_shape: Any) -> Tensor:
        map_shape = tuple(shapes.pop())
        # the function may run the attention again
        del own['attend']
        call = AttentionCall(name, module, q, k, v, tuple(hw_shape), map_shape)
        try:
            visit(call)
        finally:
            own['attend'] = watched
        if 'probe' in vars(call) and not torch.is_grad_enabled():
            return call.probe.out  # it has been computed for its rows
        return attend(q, k, v, hw_shape)

    handle = module.register_forward_pre_hook(before, with_kwargs=True)
    stack.callback(handle.remove)
    stack.callback(own.pop, 'attend', None)
    own['attend'] = watched
