"""Float32 arithmetic inside mixed precision."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Optional

import torch
from torch import Tensor

from .tracing import constant_when_compiled, is_exported, is_traced

_torch: Any = torch._C


def autocast_disabled(x: Tensor) -> AbstractContextManager:
    """Return a context in which no operation on ``x``'s device is autocast."""
    device_type = x.device.type
    # compilers, which check the setting, record contexts operation by operation
    is_needed = is_exported() or _autocast_dtype(device_type) is not None
    if is_needed and device_type in ('cpu', 'cuda'):
        return torch.autocast(device_type, enabled=False)
    return nullcontext()


def at_least_float32(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return float16 and bfloat16 tensors as float32, all others unchanged."""
    return tuple(t.float() if is_half(t) else t for t in tensors)


def is_half(x: Tensor) -> bool:
    """Return True for a tensor in float16 or bfloat16."""
    return x.dtype in (torch.float16, torch.bfloat16)


def is_autocast_to_float16(x: Tensor) -> bool:
    """Return True if matrix products on the device of ``x`` are autocast to float16."""
    return _autocast_dtype(x.device.type) == torch.float16


if hasattr(torch, 'get_autocast_dtype'):  # from torch 2.4 on
    _is_enabled: Any = torch.is_autocast_enabled

    def _autocast_dtype(device_type: str) -> Optional[torch.dtype]:
        if device_type in ('cpu', 'cuda') and _is_enabled(device_type):
            return torch.get_autocast_dtype(device_type)
        return None
else:

    def _autocast_dtype(device_type: str) -> Optional[torch.dtype]:
        if device_type == 'cuda' and torch.is_autocast_enabled():
            return torch.get_autocast_gpu_dtype()
        if device_type == 'cpu' and torch.is_autocast_cpu_enabled():
            return torch.get_autocast_cpu_dtype()
        return None


@constant_when_compiled
def _permitted(device_type: str) -> Optional[str]:
    # from torch 2.9 on, the common setting and those of libraries may differ
    if hasattr(torch.backends, 'fp32_precision'):
        backends: Any = torch.backends
        library = backends.mkldnn if device_type == 'cpu' else backends.cuda
        precision = library.matmul.fp32_precision
        return precision if precision in ('tf32', 'bf16') else None
    if device_type == 'cpu':
        medium = torch.get_float32_matmul_precision() == 'medium'
        return 'bf16' if medium else None
    return 'tf32' if torch.backends.cuda.matmul.allow_tf32 else None


def rounded_to(x: Tensor) -> Optional[str]:
    """Return the precision that matrix products round ``x`` to: 'tf32', 'bf16' or None.

    ``torch.set_float32_matmul_precision`` and its kin permit it for float32. 11 or 8 of
    24 bits are too few where exponents and inverses depend on the result.
    """
    return _permitted(x.device.type) if x.dtype == torch.float32 else None


def full_precision(x: Tensor) -> AbstractContextManager:
    """Return a context in which products of float32 on ``x``'s device are not rounded.

    PyTorch's setting, which is the process's, is changed meanwhile. A compiled graph
    cannot do that: give it float64.
    """
    if is_traced() or not rounded_to(x):
        return nullcontext()
    return _unrounded(x.device.type)


@contextmanager
def _unrounded(device_type: str) -> Iterator[None]:
    if hasattr(torch.backends, 'fp32_precision'):
        place = 'mkldnn' if device_type == 'cpu' else 'cuda', 'matmul'
        previous = _own_precision(*place)
        _set_precision(*place, 'ieee')
        try:
            yield
        finally:
            _set_precision(*place, previous)
    else:
        previous = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision('highest')
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(previous)


def _own_precision(library: str, operation: str) -> str:
    """Return a setting of PyTorch itself, 'none' if it has the value of the one above
    it. That is what PyTorch returns then, so the one above is changed for a moment."""
    precision = _torch._get_fp32_precision_getter(library, operation)
    if library == 'generic':  # there is none above it
        return precision
    above = ('generic' if operation == 'all' else library, 'all')
    above_precision = _own_precision(*above)
    _set_precision(*above, 'tf32' if precision == 'ieee' else 'ieee')
    inherited = _torch._get_fp32_precision_getter(library, operation) != precision
    _set_precision(*above, above_precision)
    return 'none' if inherited else precision


def _set_precision(library: str, operation: str, precision: str) -> None:
    _torch._set_fp32_precision_setter(library, operation, precision)
