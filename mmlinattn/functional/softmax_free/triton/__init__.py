"""Triton versions of the functions that take the most time.

This module does not import Triton. The modules with the kernels do, so import them
only if :func:`available` says that they can run.
"""

import os
from functools import cache

import torch
from torch import Tensor

__all__ = ['available']

# Blocks of a larger head dim would not fit registers.
MAX_DIM = 128


def available(*tensors: Tensor) -> bool:
    """Whether the kernels can run on these tensors.

    They need Triton 3, an NVIDIA GPU of compute capability 8.0 (Triton's own
    minimum) or later, float32 or less, and a head dim of at most 128. With
    ``TRITON_INTERPRET=1`` in the environment they run on the CPU instead, very
    slowly, for tests.

    Args:
        tensors (Tensor): The operands, (..., d).

    Returns:
        bool: True if they can.
    """
    return all(map(_fits, tensors)) and _has_triton()


def _fits(x: Tensor) -> bool:
    if x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        return False
    if x.size(-1) > MAX_DIM:
        return False
    if os.environ.get('TRITON_INTERPRET') == '1':
        return x.device.type == 'cpu'
    return (
        x.is_cuda
        and torch.version.cuda is not None
        and torch.cuda.get_device_capability(x.device) >= (8, 0)
    )


@cache
def _has_triton() -> bool:
    try:
        import triton
    except ImportError:
        return False
    return int(triton.__version__.split('.')[0]) >= 3
