"""Float32 arithmetic inside mixed precision."""

import warnings
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from types import TracebackType
from typing import Any, Optional

import torch
from torch import Tensor

from .tracing import constant_when_compiled, is_traced


def autocast_disabled(x: Tensor) -> AbstractContextManager:
    """Context in which no operation on ``x``'s device is autocast."""
    if x.device.type in ('cpu', 'cuda'):
        return torch.autocast(x.device.type, enabled=False)
    return nullcontext()


def full_float32(x: Tensor) -> AbstractContextManager:
    """Context in which no operation on ``x``'s device is autocast, and matrix products
    of float32 have all its digits.

    TF32, or what else ``torch.set_float32_matmul_precision`` and its kin permit, takes
    13 of 24 bits, too many where exponents and inverses depend on them. A compiled
    graph can't change the setting: compiling where it is on gives a warning, once.
    """
    if not is_traced():
        return _FullFloat32(x)
    _check_when_compiled(x.device.type)
    return autocast_disabled(x)


def at_least_float32(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Float16 and bfloat16 tensors as float32, all others unchanged."""
    return tuple(
        t.float() if t.dtype in (torch.float16, torch.bfloat16) else t for t in tensors
    )


class _FullFloat32:
    def __init__(self, x: Tensor) -> None:
        self.without_autocast = autocast_disabled(x)

    def __enter__(self) -> None:
        self.allowed = _precision()
        _set_precision(_FULL)
        self.without_autocast.__enter__()

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.without_autocast.__exit__(kind, error, traceback)
        _set_precision(self.allowed)


# From torch 2.9 on, each library has a setting of its own, which may contradict the
# common one, and reading that raises an error then.
if hasattr(torch.backends, 'fp32_precision'):
    _FULL: Any = ('ieee', 'ieee')
    _backends: Any = torch.backends
    _LIBRARIES = _backends.cuda.matmul, _backends.mkldnn.matmul

    def _precision() -> Any:
        return tuple(library.fp32_precision for library in _LIBRARIES)

    def _set_precision(precision: Any) -> None:
        for library, value in zip(_LIBRARIES, precision):
            library.fp32_precision = value

    def _tf32_is_on() -> bool:
        return _LIBRARIES[0].fp32_precision == 'tf32'
else:
    _FULL = 'highest'
    _precision = torch.get_float32_matmul_precision
    _set_precision = torch.set_float32_matmul_precision

    def _tf32_is_on() -> bool:
        return torch.backends.cuda.matmul.allow_tf32


@constant_when_compiled
def _check_when_compiled(device_type: str) -> None:
    if device_type == 'cuda' and _tf32_is_on():
        _warn_of_tf32()


@cache
def _warn_of_tf32() -> None:
    warnings.warn(
        'TF32 is on while softmax-free attention is compiled: it costs its landmark '
        'matrix and its inverse some digits, which eager mode would keep. '
        "torch.set_float32_matmul_precision('highest') before compiling keeps them",
        stacklevel=2,
    )
