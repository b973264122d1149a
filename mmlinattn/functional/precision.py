"""Float32 arithmetic inside mixed precision."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Optional

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

from .tracing import constant_when_compiled, is_traced


def autocast_disabled(x: Tensor) -> AbstractContextManager:
    """Context in which no operation on ``x``'s device is autocast."""
    if x.device.type in ('cpu', 'cuda'):
        return torch.autocast(x.device.type, enabled=False)
    return nullcontext()


def at_least_float32(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Float16 and bfloat16 tensors as float32, all others unchanged."""
    return tuple(t.float() if is_half(t) else t for t in tensors)


def is_half(x: Tensor) -> bool:
    """True for a tensor in float16 or bfloat16."""
    return x.dtype in (torch.float16, torch.bfloat16)


def is_autocast_to_float16(x: Tensor) -> bool:
    """True if matrix products on the device of ``x`` are autocast to float16."""
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

    oneDNN's bfloat16 convolutions write outside their memory or abort on CPUs with AMX
    (torch 2.1, small maps), and have wrong results where channels are few and strides
    long (torch 2.12, pytorch/pytorch issue 169688). Matrix products are not affected.
    Checkpoints that repeat the forward pass need :meth:`checkpoint_options`.

    Args:
        round_to (torch.dtype, optional): Half precision to round the operands and the
            result to, where autocast would act: a GPU rounds both and sums in float32.
            It is for measurements of precision.
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
        """Options that give a checkpoint's second pass the context of its first. A
        backward pass does not inherit the context of the forward pass.
        """
        if not _active:
            return {}
        again = Float32Convolutions(_active[-1].round_to)
        return dict(context_fn=lambda: (nullcontext(), again))

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        operands = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
        on_cpu = all(x.device.type == 'cpu' for x in operands)
        if func not in _CONVOLUTIONS or not on_cpu:
            return func(*args, **kwargs)
        rounded = None
        if _autocast_dtype('cpu') or any(x.dtype == self.round_to for x in operands):
            rounded = self.round_to

        def widened(x: Tensor) -> Tensor:
            return at_least_float32(x if rounded is None else x.to(rounded))[0]

        args, kwargs = tree_map_only(Tensor, widened, (args, kwargs))
        with torch.autocast('cpu', enabled=False):
            out = func(*args, **kwargs)
        return out if rounded is None else out.to(rounded)


_active: list[Float32Convolutions] = []
_CONVOLUTIONS = {
    getattr(torch, f'conv{kind}{n}d') for kind in ('', '_transpose') for n in (1, 2, 3)
}


@constant_when_compiled
def _permitted(device_type: str) -> Optional[str]:
    # from torch 2.9 on, the common setting and those of libraries may differ
    if hasattr(torch.backends, 'fp32_precision'):
        precision = _library(device_type).matmul.fp32_precision
        return precision if precision in ('tf32', 'bf16') else None
    if device_type == 'cpu':
        medium = torch.get_float32_matmul_precision() == 'medium'
        return 'bf16' if medium else None
    return 'tf32' if torch.backends.cuda.matmul.allow_tf32 else None


def _library(device_type: str) -> Any:
    backends: Any = torch.backends
    return backends.mkldnn if device_type == 'cpu' else backends.cuda


def rounded_to(x: Tensor) -> Optional[str]:
    """The precision that matrix products round ``x`` to: 'tf32', 'bf16' or None.

    ``torch.set_float32_matmul_precision`` and its kin permit it for float32. 11 or 8 of
    24 bits are too few where exponents and inverses depend on the result.
    """
    return _permitted(x.device.type) if x.dtype == torch.float32 else None


def full_precision(x: Tensor) -> AbstractContextManager:
    """Context in which products of float32 on ``x``'s device are not rounded.

    PyTorch's setting, which is the process's, is changed meanwhile. A compiled graph
    cannot do that: give it float64.
    """
    if is_traced() or not rounded_to(x):
        return nullcontext()
    return _unrounded(x.device.type)


@contextmanager
def _unrounded(device_type: str) -> Iterator[None]:
    if hasattr(torch.backends, 'fp32_precision'):
        setting = _library(device_type).matmul
        given, setting.fp32_precision = setting.fp32_precision, 'ieee'
        try:
            yield
        finally:
            setting.fp32_precision = given
    else:
        given = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision('highest')
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(given)
