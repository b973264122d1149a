"""Detects tracing, compiling and exporting, and adapts operations to them.

An exporter records one run of a model, in a file that serves for maps of other sizes.
A size is a symbol there: an integer of unknown value, of a type of the exporter's own.
A branch on it would be recorded as that one run took it.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, Callable

import torch
from torch import Tensor
from torch.autograd import Function, forward_ad

# asked once, because functions of each block need the answers
_HAS_IS_COMPILING = hasattr(torch.compiler, 'is_compiling')
_HAS_IS_EXPORTING = hasattr(torch.compiler, 'is_exporting')
_UNBOUNDED = 2**31  # no size that is a number


def is_traced() -> bool:
    """Return True while a tracer, a compiler or an exporter records the run.

    A recording must not read values or branch on them.
    """
    if torch.jit.is_tracing():
        return True
    # torch 2.1 has this function in the compiler's own module
    return (torch.compiler if _HAS_IS_COMPILING else torch._dynamo).is_compiling()


def constant_when_compiled(function: Callable) -> Callable:
    """Equivalent of ``torch.compiler.assume_constant_result``, without the seconds
    that importing the compiler takes."""
    vars(function)['_dynamo_marked_constant'] = True
    return function


def is_exported() -> bool:
    """Return True while the run is recorded for maps of other sizes too.

    This holds in a trace, which PyTorch's export to ONNX makes, and in
    ``torch.export``, but not in ``torch.compile``, which checks sizes and compiles
    again. Such a recording must not branch on sizes.
    """
    if torch.jit.is_tracing():
        return True
    compiler: Any = torch.compiler
    return _HAS_IS_EXPORTING and compiler.is_exporting()


def apply(function: type[Function], *args: Any) -> Any:
    """Call an autograd function. Where nothing is differentiated, and in an export,
    whose file can't hold Python code, that is its forward pass alone.

    Args:
        function (type): A subclass of :class:`torch.autograd.Function` of the newer
            kind, with ``setup_context``. Its derivative in forward mode is called
            ``tangent``, not ``jvp``, which compilers do not take.
        *args: Arguments of its ``forward``.
    """
    if is_exported():
        return function.forward(*args)
    learns = torch.is_grad_enabled() and any(
        isinstance(argument, Tensor) and argument.requires_grad for argument in args
    )
    if is_traced():
        # the compiler of torch 2.1 takes such a function for one of the older kind
        return function.apply(*args) if learns else function.forward(*args)
    if learns or _has_transforms() or forward_ad._current_level >= 0:
        kind: Any = function
        return _with_jvp(kind).apply(*args)
    return function.forward(*args)


@cache
def _with_jvp(function: Any) -> type[Function]:
    return type(function.__name__, (function,), {'jvp': function.tangent})


def is_transformed() -> bool:
    """Return True inside of ``torch.func``, where values can't be branched on."""
    return not is_traced() and _has_transforms()  # a compiler does not ask it


def _has_transforms() -> bool:
    bindings: Any = torch._C
    return bindings._are_functorch_transforms_active()


def can_read_values(x: Tensor) -> bool:
    """Return True where a branch may depend on the values of a tensor: outside of
    recordings, ``torch.func`` and the capture of a CUDA graph, if the tensor has values
    (on the device meta, it has none)."""
    if is_traced() or _has_transforms() or x.is_meta:
        return False
    return not (x.is_cuda and torch.cuda.is_current_stream_capturing())


def ceil_div(size: Any, divisor: Any) -> Any:
    """``size / divisor`` rounded up, of a size that may be a symbol.

    It is written like the size of a convolution's output, with one division, so that
    compilers join those of several stages, and know that a map of this size has as many
    tokens as the convolution's.
    """
    return (size - 1) // divisor + 1


def are_equal(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Return whether sizes are known to be equal. Symbols are not: a branch on each
    size of each stage would make a compiler compile again and again."""
    if is_exported():
        return False
    # compilers of that age follow statically_known_true
    if _HAS_IS_EXPORTING and is_traced():
        # importing it takes a second
        from torch.fx.experimental.symbolic_shapes import statically_known_true  # type: ignore[attr-defined,unused-ignore]

        # not their equality, which a compiler may have learned from this run's sizes
        if not all(statically_known_true(size < _UNBOUNDED) for size in (*a, *b)):
            return False
    return all(x == y for x, y in zip(a, b))


def smaller(a: Any, b: Any) -> Any:
    """Return the minimum of two sizes, which may be symbols."""
    if not is_exported():
        return a if a <= b else b  # min would stay an expression of a compiler's
    if isinstance(b, Tensor):  # the sizes of a tracer are tensors
        a, b = b, a
    return a.clamp(max=b) if isinstance(a, Tensor) else torch.sym_min(a, b)


def larger(a: Any, b: Any) -> Any:
    """Return the maximum of two sizes, which may be symbols."""
    if not is_exported():
        return a if a >= b else b
    if isinstance(b, Tensor):
        a, b = b, a
    return a.clamp(min=b) if isinstance(a, Tensor) else torch.sym_max(a, b)
