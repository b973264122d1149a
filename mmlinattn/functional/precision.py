"""Float32 arithmetic inside mixed precision."""

import warnings
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from types import TracebackType
from typing import Any, Callable, Optional

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

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


def is_autocast_to_float16(x: Tensor) -> bool:
    """Whether matrix products on the device of ``x`` are autocast to float16."""
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


class Float32Convolutions(TorchFunctionMode):
    """Context in which no convolution on a CPU is autocast: its half-precision
    operands become float32, and so does its result.

    oneDNN's bfloat16 convolutions write beside their memory or abort on CPUs with AMX
    (torch 2.1, small maps), and have wrong results where channels are few and strides
    long (torch 2.12, pytorch/pytorch issue 169688). Matrix products are not concerned.
    Checkpoints that compute the forward pass again need :meth:`checkpoint_options`.

    Args:
        round_to (torch.dtype, optional): Half precision to which the operands and the
            result of what would be autocast are rounded, as a GPU does, which sums in
            float32. It is for measurements of precision.
    """

    def __init__(self, round_to: Optional[torch.dtype] = None) -> None:
        super().__init__()
        self.round_to = round_to

    def __enter__(self) -> 'Float32Convolutions':
        _active.append(self)
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        _active.pop()
        super().__exit__(*error)

    @staticmethod
    def checkpoint_options() -> dict[str, Any]:
        """Options of a checkpoint, with which its second pass is in the context in
        which the first one is. No context of a forward pass reaches a backward pass.
        """
        if not _active:
            return {}
        round_to = _active[-1].round_to
        return dict(
            context_fn=lambda: (nullcontext(), Float32Convolutions(round_to=round_to))
        )

    def __torch_function__(
        self,
        func: Callable,
        types: Any,
        args: tuple = (),
        kwargs: Optional[dict[str, Any]] = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func not in _CONVOLUTIONS:
            return func(*args, **kwargs)
        operands = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
        if any(x.device.type != 'cpu' for x in operands):
            return func(*args, **kwargs)
        is_half = _autocast_dtype('cpu') is not None or any(
            x.dtype == self.round_to for x in operands
        )
        rounded = self.round_to if is_half else None
        with torch.autocast('cpu', enabled=False):
            out = func(
                *(_as_float32(x, rounded) for x in args),
                **{name: _as_float32(x, rounded) for name, x in kwargs.items()},
            )
            return out if rounded is None else out.to(rounded)


_active: list[Float32Convolutions] = []
_CONVOLUTIONS = {
    torch.conv1d,
    torch.conv2d,
    torch.conv3d,
    torch.conv_transpose1d,
    torch.conv_transpose2d,
    torch.conv_transpose3d,
}


def _as_float32(x: Any, rounded: Optional[torch.dtype]) -> Any:
    if not isinstance(x, Tensor):
        return x
    return at_least_float32(x if rounded is None else x.to(rounded))[0]


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
