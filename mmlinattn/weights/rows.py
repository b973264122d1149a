"""Rows: the official modules that each of our modules is made of."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Callable, NamedTuple

import torch
from torch import Tensor

StateDict = dict[str, Tensor]
Keys = Collection[str]

WHOLE = ('',)
WEIGHT = ('weight',)
LINEAR = NORM = ('weight', 'bias')
BATCH_NORM = NORM + ('running_mean', 'running_var', 'num_batches_tracked')


def unchanged(tensor: Tensor) -> Tensor:
    """Return the tensor itself."""
    return tensor


def stacked(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors joined along their first axis; one alone may have none."""
    return torch.cat(tuple(tensors)) if len(tensors) > 1 else tensors[0]


class Row(NamedTuple):
    """The official sources of one of our modules.

    Several official modules, joined by ' + ', are stacked. `tensors` are names inside
    of the module, ('',) for a parameter without one. `change` takes an official tensor
    to ours, `undo` ours to it. `shares` is the ratio of the parts of a stack: (1, 2) is
    a third and the rest.
    """

    ours: str
    official: str
    tensors: tuple[str, ...] = WHOLE
    change: Callable[[Tensor], Tensor] = unchanged
    undo: Callable[[Tensor], Tensor] = unchanged
    shares: tuple[int, ...] = (1,)

    def sources(self) -> dict[str, list[str]]:
        """Return the official keys of each of our keys."""
        modules = self.official.split(' + ')
        return {
            f'{self.ours}.{tensor}'.strip('.'): [
                f'{module}.{tensor}'.strip('.') for module in modules
            ]
            for tensor in self.tensors
        }

    def forward(self, official: Sequence[Tensor]) -> Tensor:
        """Our tensor, made of the official ones."""
        return self.change(stacked(official))

    def backward(self, ours: Tensor) -> list[Tensor]:
        """Return the official tensors that ours is made of."""
        tensor = self.undo(ours)
        if len(self.shares) == 1:
            return [tensor]
        unit = len(tensor) // sum(self.shares)
        # each gets a copy, so that a file doesn't hold the stack twice
        return [
            part.clone()
            for part in tensor.split([unit * share for share in self.shares])
        ]


def modules(names: Mapping[str, str]) -> tuple[Row, ...]:
    """Return rows of modules that have weight and bias, by our name for them."""
    return tuple(Row(ours, official, LINEAR) for ours, official in names.items())


def nested(ours: str, official: str, rows: Iterable[Row]) -> list[Row]:
    """Return rows of a module as rows of the one that holds it under these prefixes."""
    return [
        row._replace(
            ours=ours + row.ours,
            official=' + '.join(official + name for name in row.official.split(' + ')),
        )
        for row in rows
    ]
