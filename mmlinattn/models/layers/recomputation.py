"""Blocks that the backward pass computes again, to save memory."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint

from .padding import trains_batch_norm


def recomputed(block: nn.Module, *args: Any) -> Tensor:
    """Run a block whose backward pass computes it again. Its BatchNorms count the batch
    once."""
    if not trains_batch_norm(block):
        return checkpoint(block, *args, use_reentrant=False)

    def contexts() -> tuple[AbstractContextManager, AbstractContextManager]:
        return nullcontext(), _statistics_kept(block)

    return checkpoint(block, *args, use_reentrant=False, context_fn=contexts)


@contextmanager
def _statistics_kept(block: nn.Module) -> Iterator[None]:
    """Return a context in which BatchNorms that train keep their running statistics."""
    norms: list[Any] = [
        layer
        for layer in block.modules()
        if isinstance(layer, _BatchNorm)
        and layer.training
        and layer.track_running_stats
    ]
    before = [(norm.momentum, norm.num_batches_tracked.clone()) for norm in norms]
    for norm in norms:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for norm, (momentum, number) in zip(norms, before):
            norm.momentum = momentum
            norm.num_batches_tracked.copy_(number)
