"""Looks at the attentions and blocks of a model while it runs.

Legend: B batch, (H, W) map, N tokens, C channels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

import torch
from torch import Tensor, nn

from mmlinattn.functional import crop_map

from .probing import AttentionProbe

# Functions import what they ask for: the measures beside them need torch alone.
if TYPE_CHECKING:
    from mmlinattn.models.attentions.base import BaseAttention
    from mmlinattn.models.layers import TransformerBlock


def is_class_attention(module: nn.Module) -> bool:
    """Whether the class token is the only query."""
    from mmlinattn.models.attentions.talking_heads import ClassAttention

    return isinstance(module, ClassAttention)


@dataclass(frozen=True, eq=False)
class AttentionCall:
    """One call of an attention.

    Attributes:
        name (str): Name of the module in the model.
        module (BaseAttention): The attention.
        q (Tensor): Queries, (B, N, C), as ``attend`` got them.
        k (Tensor): Keys, (B, M, C).
        v (Tensor): Values, (B, M, C).
        hw_shape (tuple[int]): (H, W) of ``attend``, of whole windows where there
            are windows.
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
        """The attention, computed once for whatever rows are asked for."""
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
        """Index of the query at a position of the image.

        Args:
            x (float): From the left, 0, to the right, 1.
            y (float): From the top, 0, to the bottom, 1.

        Returns:
            int: The index; 0 for the class token of class attention, which is the
            only query.
        """
        if is_class_attention(self.module):
            return 0
        height, width = self.map_shape
        row = min(int(y * height), height - 1)
        column = min(int(x * width), width - 1)
        return self.num_extra + row * self.hw_shape[1] + column

    def queries(self, limit: int) -> list[int]:
        """Indices of the map's queries, evenly spread if there are more than a limit.

        Args:
            limit (int): The most that are wanted.
        """
        if is_class_attention(self.module):
            return [0]
        num = math.prod(self.map_shape)
        tokens = torch.linspace(0, num - 1, min(num, limit)).round().long().tolist()
        width = self.map_shape[1]
        return [
            self.num_extra + token // width * self.hw_shape[1] + token % width
            for token in tokens
        ]

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
    """One call of a transformer block.

    Attributes:
        name (str): Name of the module in the model.
        module (TransformerBlock): The block.
        tokens (Tensor): What it returned, (B, N, C).
        hw_shape (tuple[int]): (H, W) of its map.
    """

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
    """Context in which functions see what attentions and blocks of a model do.

    They are called while the model runs, so that nothing is kept for longer than a
    function keeps it. Blocks of class attention, which change one token only, are
    not among the blocks.

    Args:
        model (nn.Module): The model.
        on_attention (callable, optional): Called before each attention is computed.
        on_block (callable, optional): Called after each block.

    Raises:
        ValueError: If the model has no attention of mmlinattn.
    """
    attentions = attentions_of(model)
    with ExitStack() as stack:
        for name, module in attentions.items():
            if on_attention:
                _watch_attention(stack, name, module, on_attention)
        for name, module in blocks_of(model).items():
            if on_block:
                _watch_block(stack, name, module, on_block)
        yield


def attentions_of(model: nn.Module) -> dict[str, BaseAttention]:
    """Attentions of mmlinattn in a model, by name, in their order.

    Args:
        model (nn.Module): The model.

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
    from mmlinattn.models.layers import TransformerBlock

    return {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, TransformerBlock) and not is_class_attention(module.attn)
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
        # whoever looks at the call may run the attention again
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


def _watch_block(
    stack: ExitStack,
    name: str,
    module: TransformerBlock,
    visit: Callable[[BlockCall], Any],
) -> None:
    def after(_module: nn.Module, args: Any, kwargs: Any, out: Tensor) -> None:
        hw_shape = kwargs.get('hw_shape', args[-1])
        visit(BlockCall(name, module, out, tuple(hw_shape)))

    handle = module.register_forward_hook(after, with_kwargs=True)
    stack.callback(handle.remove)
