"""Float32 arithmetic inside mixed precision."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def autocast_disabled(x: Tensor) -> AbstractContextManager:
    """Context in which no operation on ``x``'s device is autocast."""
    if x.device.type in ('cpu', 'cuda'):
        return torch.autocast(x.device.type, enabled=False)
    return nullcontext()


def at_least_float32(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Float16 and bfloat16 tensors as float32, all others unchanged."""
    return tuple(
        t.float() if t.dtype in (torch.float16, torch.bfloat16) else t for t in tensors
    )
