r"""Newton-Raphson's pseudo-inverse as a polynomial in A of low degree.

T steps take an eigenvalue to :math:`g(\lambda) = (1 - r) / \lambda` with
:math:`r = (1 - \alpha\lambda^2)^{2^T}`, a smooth bump at the lower end of the spectrum.
They need 40 products for it. A polynomial resolves the end of an interval better than
its middle, and needs five products and a few with thin matrices.

Legend: n matrices, m landmarks, k columns of a right-hand side, T steps.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, Callable, NamedTuple

import torch
from torch import Tensor

from ..tracing import constant_when_compiled, is_exported

# Fewer steps don't end at the step size's bound; after more, rounding errors of
# float32 are above the cut-off.
FEWEST_STEPS, MOST_STEPS = 18, 24
# Largest error of r at any eigenvalue, and largest r that counts as 0.
_TOLERANCES = {torch.float32: 5e-7, torch.float64: 1e-13}
# Every third power is kept until the backward pass; the others are computed again.
_KEPT = 3


class Polynomial(NamedTuple):
    r"""g as a composition of parabolas and a last polynomial, with
    :math:`s = \lambda\sqrt{\alpha/2}` in [0, 1].

    With :math:`w_0 = s` and :math:`w_{k+1} = 4 h_k w_k (1 - h_k w_k)`,

    .. math:: 1 - r = w_K Q(w_K), \quad
              g = \sqrt{\alpha/2}\, \prod_k 4 h_k (1 - h_k w_k)\, Q(w_K)

    A parabola stretches the lower end fourfold, and keeps [0, 1] and all that is
    above the cut-off. Those are the accelerated steps of Pan and Schreiber (*An
    Improved Newton Iteration for the Generalized Inverse of a Matrix, with
    Applications*, SIAM J. Sci. Stat. Comput. 12, 1991). Q turns their cut-off into
    that of Newton-Raphson.

    Attributes:
        heights (tuple[float]): :math:`h_k`.
        coefficients (tuple[float]): Coefficients of Q in Chebyshev's polynomials of
            2w - 1, lowest first.
    """

    heights: tuple[float, ...]
    coefficients: tuple[float, ...]


@constant_when_compiled
def newton_polynomial(num_iters: int, dtype: torch.dtype) -> Polynomial:
    """Return the polynomial of T = 18...24 steps, the same for every matrix: accurate
    to 1e-6 in float32, 1e-13 in float64."""
    return _fit(num_iters, _TOLERANCES[dtype])


@cache
def _fit(num_iters: int, tolerance: float) -> Polynomial:
    reach = 2 ** ((num_iters + 1) / 2)
    # from this value of w on, r is negligible
    edge = math.sqrt(-math.log(tolerance)) / reach
    heights = []
    while edge < 0.5:
        heights.append(1 / (1 + edge))
        edge = 4 * heights[-1] * edge * (1 - heights[-1] * edge)

    def wanted(w: float) -> float:
        """(1 - r) / w, where the parabolas take s to w on their rising halves."""
        s = w
        for h in reversed(heights):
            s = s / (2 * h * (1 + math.sqrt(1 - s)))
        return -math.expm1(2**num_iters * math.log1p(-2 * s * s)) / w

    grid = [((i + 1) / 256, wanted((i + 1) / 256)) for i in range(256)]
    for count in range(6, 128):
        coefficients = _interpolate(wanted, count)
        if all(
            w * abs(value - _evaluate(coefficients, w)) <= tolerance
            for w, value in grid
        ):
            break
    return Polynomial(tuple(heights), coefficients)


def _interpolate(function: Callable[[float], float], count: int) -> tuple[float, ...]:
    """Return coefficients of the polynomial through Chebyshev's nodes of [0, 1]."""
    angles = [math.pi * (i + 0.5) / count for i in range(count)]
    values = [function((1 + math.cos(angle)) / 2) for angle in angles]
    sums = [
        math.fsum(value * math.cos(n * angle) for value, angle in zip(values, angles))
        for n in range(count)
    ]
    return (sums[0] / count, *(2 * total / count for total in sums[1:]))


def _evaluate(coefficients: tuple[float, ...], w: float) -> float:
    angle = math.acos(2 * w - 1)
    return math.fsum(c * math.cos(n * angle) for n, c in enumerate(coefficients))


def apply_polynomial(
    polynomial: Polynomial, scale: Tensor, powers: Sequence[Any], x: Tensor
) -> Tensor:
    r"""Multiply x (n, m, k) by g(A), with :math:`\sqrt{\alpha/2}`, (n, 1, 1), as the
    scale and the :func:`polynomial_powers` of ``scale * a``."""
    x = scale * x
    for k in range(len(polynomial.heights)):
        x = _factor(polynomial, powers, k, x)
    shifted = powers[-1]
    # Clenshaw's recurrence
    lowest, *others, highest = polynomial.coefficients
    b, following = highest * x, torch.zeros_like(x)
    for c in reversed(others):
        b, following = torch.baddbmm(following, shifted, b, beta=-1).add(x, alpha=c), b
    return torch.baddbmm(following, shifted, b, beta=-1, alpha=0.5).add(x, alpha=lowest)


def _factor(polynomial: Polynomial, powers: Sequence[Any], k: int, x: Tensor) -> Tensor:
    """Multiply x by 4 h_k (1 - h_k w_k)."""
    h, w = polynomial.heights[k], powers[k]
    if w is not None:
        return torch.baddbmm(x, w, x, beta=4 * h, alpha=-4 * h**2)
    return torch.sub(4 * h * x, _times(polynomial, powers, k, x), alpha=4 * h**2)


def _times(polynomial: Polynomial, powers: Sequence[Any], k: int, x: Tensor) -> Tensor:
    """Multiply x by w_k."""
    w = powers[k]
    if w is not None:
        return torch.bmm(w, x)
    return _times(polynomial, powers, k - 1, _factor(polynomial, powers, k - 1, x))


def polynomial_powers(polynomial: Polynomial, w: Tensor) -> list[Any]:
    """Return the matrices that :func:`apply_polynomial` multiplies by, (n, m, m) each,
    of a symmetric w with eigenvalues in [0, 1]: :math:`w_0` to :math:`w_{K-1}`, None
    for those that are not kept, and :math:`4 w_K - 2`."""
    powers: list[Any] = []
    interval = 1 if is_exported() else _KEPT
    for k, h in enumerate(polynomial.heights):
        powers.append(w if k % interval == 0 else None)
        w = torch.baddbmm(w, w, w, beta=4 * h, alpha=-4 * h**2)
    # ONNX has no view of a diagonal
    eye = torch.eye(w.size(-1), device=w.device, dtype=w.dtype)
    return [*powers, torch.sub(4 * w, eye, alpha=2)]
