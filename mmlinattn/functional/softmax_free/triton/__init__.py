"""Triton versions of the functions that take the most time.

This module does not import Triton. The modules with the kernels do, so import them
only if :func:`available` says that they can run.
"""

import os
import warnings
from functools import cache

import torch
from torch import Tensor

from ...tracing import constant_when_compiled

__all__ = ['available']

# Blocks of a larger head dim would not fit registers.
MAX_DIM = 128


def available(*tensors: Tensor, max_dim: float = MAX_DIM) -> bool:
    """Whether the kernels can run on these tensors.

    They need Triton 3, an NVIDIA GPU of compute capability 8.0 (Triton's own
    minimum) or later, float32 or less, and a head dim of at most 128. With
    ``TRITON_INTERPRET=1`` in the environment they run on the CPU instead, very
    slowly, for tests. Where Triton is all that is missing, a warning says so once.

    Args:
        tensors (Tensor): The operands, (..., d).
        max_dim (float): Largest d.

    Returns:
        bool: True if they can.
    """
    fit = all(_fits(x) and x.size(-1) <= max_dim for x in tensors)
    return fit and _has_triton()


def _fits(x: Tensor) -> bool:
    if x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        return False
    if _interpreted():
        return x.device.type == 'cpu'
    return x.is_cuda and torch.version.cuda is not None and _new_enough(x.device.index)


@constant_when_compiled
def _interpreted() -> bool:
    return os.environ.get('TRITON_INTERPRET') == '1'


@constant_when_compiled
def _new_enough(index: int) -> bool:
    return torch.cuda.get_device_capability(index) >= (8, 0)


@constant_when_compiled
def _has_triton() -> bool:
    return _find_triton()


@cache
def _find_triton() -> bool:
    try:
        import triton
    except ImportError:
        found = 'Triton is not installed'
    else:
        if int(triton.__version__.split('.')[0]) >= 3:
            return True
        found = f'Triton is {triton.__version__}'
    warnings.warn(
        f"{found}, and softmax-free attention's kernels need Triton 3. Without them "
        'its products are plain PyTorch: the same results, but in float32 even under '
        'mixed precision, and with every block of the kernel matrix written to memory '
        "and read again. torch 2.4 or later brings Triton 3: pip install 'torch>=2.4'",
        stacklevel=2,
    )
    return False
