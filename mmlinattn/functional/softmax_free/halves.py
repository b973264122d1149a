r"""Products of float32 matrices on tensor cores that multiply half precision.

A matrix is the sum of two in float16, its rounded entries and the rounding errors. Of
the four products of such parts the smallest is left out; the others are one product
with a longer inner dimension, summed and returned in float32. What is missing is some
:math:`2^{-22}` of the factors' norms.

Legend: n matrices, m rows and columns.
"""

import torch
from torch import Tensor

from ..tracing import constant_when_compiled

# Keeps the small part of entries up to 1 above float16's smallest numbers, and large
# entries below its largest one.
_SCALE = 2.0**15
# GPUs whose tensor cores multiply halves, with sums in float32, some 8 times as fast
# as their other cores multiply float32. Those of other GPUs gain a factor of 2 to 4,
# and parts cost 2 to 3 times the work.
_CAPABILITIES = {(7, 0), (8, 0), (9, 0), (10, 0), (10, 3)}
# From this number of rows on, products take longer than making parts of factors.
_ROWS_FROM = 512


def halves_pay(x: Tensor) -> bool:
    """Whether products of parts are faster than plain ones on x's device.

    They need float32, large matrices, such a GPU, and torch 2.8, whose ``bmm`` returns
    float32 for factors in half precision.
    """
    if not x.is_cuda or x.dtype != torch.float32 or torch.version.cuda is None:
        return False
    if x.size(-1) < _ROWS_FROM:
        return False
    return _has_mixed_bmm() and _has_fast_halves(x.device.index)


@constant_when_compiled
def _has_mixed_bmm() -> bool:
    return 'dtype' in torch.ops.aten.bmm.overloads()


@constant_when_compiled
def _has_fast_halves(index: int) -> bool:
    return torch.cuda.get_device_capability(index) in _CAPABILITIES


def parabola_of_halves(w: Tensor, height: float) -> Tensor:
    """4 h w (1 - h w), as :func:`~.polynomial.parabola`. Of the three products two
    are enough, as the mixed ones are transposes of each other.

    Args:
        w (Tensor): Symmetric, float32, entries in [-1, 1], (n, m, m).
        height (float): h.

    Returns:
        Tensor: (n, m, m).
    """
    high, low = _parts(w)
    mixed = _bmm(low, high)
    square = _bmm(high, high) + mixed + mixed.mT
    return torch.add(4 * height * w, square, alpha=-4 * height**2 / _SCALE**2)


def left_halves(x: Tensor) -> Tensor:
    """The parts of a left factor: float32, entries in [-1, 1], (n, m, m) to
    (n, m, 3 m)."""
    high, low = _parts(x)
    return torch.cat((low, high, high), -1)


def right_halves(x: Tensor) -> Tensor:
    """The parts of a right factor, as :func:`left_halves`, (n, m, m) to
    (n, 3 m, m)."""
    high, low = _parts(x)
    return torch.cat((high, low, high), -2)


def product_of_halves(left: Tensor, right: Tensor) -> Tensor:
    """The product of both factors in float32, (n, m, m)."""
    return _bmm(left, right) * _SCALE**-2


def _parts(x: Tensor) -> tuple[Tensor, Tensor]:
    x = x * _SCALE
    high = x.half()
    return high, (x - high).half()


def _bmm(x: Tensor, y: Tensor) -> Tensor:
    """The product of halves in float32; elsewhere than on a GPU what tensor cores
    compute: exact products, and sums in float32."""
    if x.is_cuda:
        # torch 2.1's types lack the argument
        return torch.bmm(x, y, out_dtype=torch.float32)  # type: ignore[call-arg]
    return torch.bmm(x.float(), y.float())
