"""Newton-Raphson's pseudo-inverse from the large eigenvalues of A only.

Legend: m landmarks, k columns of a right-hand side, r eigenpairs.
"""

from functools import cache
from typing import NamedTuple, Optional

import torch
from torch import Tensor

from .newton import newton_filter

# The cut-off must be this many times the mean eigenvalue. Otherwise too many
# eigenvalues are large, and the search for them does not pay off.
_CUT_OFF_OVER_MEAN = 1.5
# Columns of a Krylov block. A small block makes the most of every product with A.
_BLOCK = 16
# Size of the Krylov basis at the first look at its eigenpairs, by how much it grows
# at least to the next, and its size for each eigenpair wanted when that pays off.
_FIRST_LOOK, _GROWTH, _PER_EIGENPAIR = 96, 32, 2.75
# Eigenpairs above this are computed, the others left to a polynomial on [0, 1];
# both in units of the cut-off.
_LEADING = 0.8
# Degree of the polynomial in the square, and what its error may be, as an
# eigenpair's.
_DEGREES = {torch.float32: 4, torch.float64: 11}
_TOLERANCES = {torch.float32: 1e-5, torch.float64: 1e-12}


class Deflated(NamedTuple):
    r"""A as :math:`Q^T diag(\lambda) Q + R`: the eigenpairs of large eigenvalues,
    and a rest that a polynomial of low degree is enough for.

    Attributes:
        vectors (Tensor): Q, orthonormal rows, (r, m).
        filtered (Tensor): :math:`g(\lambda)`, (r, 1).
        rest (Tensor, optional): R, (m, m); None where all eigenpairs are there.
        slope (Tensor): :math:`c = 2^T \alpha`, that of g at 0; a scalar on the CPU.
    """

    vectors: Tensor
    filtered: Tensor
    rest: Optional[Tensor]
    slope: Tensor


def deflate(a: Tensor, alpha: float, num_iters: int) -> Deflated:
    r"""Splits one matrix for :func:`apply_deflated`.

    In A's eigenbasis Newton-Raphson is :math:`\lambda c \varphi(c\lambda^2)` with
    :math:`c = 2^T \alpha` and a smooth :math:`\varphi`. Below the cut-off
    :math:`c^{-1/2}` a polynomial of degree 4 has float32's accuracy; above it
    there are few eigenvalues in a natural image, and block Lanczos has them
    after some ten products with 16 columns.

    A test of the rest makes sure that none is missed: its norm is below the cut-off
    with probability 1 - 1e-16 (Halko, Martinsson and Tropp, *Finding Structure with
    Randomness*, arXiv 0909.4061, lemma 4.1). Otherwise, and where too many
    eigenvalues are large (some 90 of 1,050), all eigenpairs are computed.

    Args:
        a (Tensor): Symmetric matrix in float32 or float64, (m, m).
        alpha (float): Step size.
        num_iters (int): Number T of steps.

    Returns:
        Deflated: The same whenever ``a`` is the same.
    """
    slope = torch.tensor(2.0**num_iters * alpha, dtype=torch.float64, device='cpu')
    scale = slope.item() ** 0.5
    if 1 / scale > _CUT_OFF_OVER_MEAN * a.diagonal().mean():
        generator = torch.Generator().manual_seed(0)
        start, probes = torch.randn(
            2, _BLOCK, len(a), generator=generator, dtype=a.dtype, device='cpu'
        ).to(a.device)
        pairs = _leading_eigenpairs(a, start, scale)
        if pairs is not None:
            eigenvalues, vectors = pairs
            rest = torch.addmm(a, (eigenvalues * vectors).mT, vectors, alpha=-1)
            if _norm_is_below_one(rest, probes, scale):
                filtered = newton_filter(eigenvalues, alpha, num_iters)
                return Deflated(vectors, filtered, rest, slope)
    eigenvalues, vectors = torch.linalg.eigh(a)
    filtered = newton_filter(eigenvalues, alpha, num_iters).unsqueeze(-1)
    return Deflated(vectors.mT, filtered, None, slope)


def apply_deflated(deflated: Deflated, x: Tensor, num_iters: int) -> Tensor:
    """The operator of ``num_iters`` Newton-Raphson steps times ``x``.

    Args:
        deflated (Deflated): Of a matrix (m, m).
        x (Tensor): (m, k).
        num_iters (int): Number T of steps.

    Returns:
        Tensor: (m, k).
    """
    vectors, filtered, rest, slope = deflated
    leading = vectors @ x
    if rest is None:
        return vectors.mT @ (filtered * leading)
    # twice, as c multiplies what is left of the large components
    x = torch.addmm(x, vectors.mT, leading, alpha=-1)
    again = vectors @ x
    x = torch.addmm(x, vectors.mT, again, alpha=-1)
    c = slope.item()
    *coefficients, highest = _polynomial(num_iters, _DEGREES[x.dtype])
    out = highest * x
    for coefficient in reversed(coefficients):
        out = torch.addmm(x, rest, rest @ out, beta=coefficient, alpha=c)
    out = rest @ out
    return torch.addmm(out, vectors.mT, filtered * (leading + again), beta=c)


def _leading_eigenpairs(
    a: Tensor, start: Tensor, scale: float
) -> Optional[tuple[Tensor, Tensor]]:
    """Eigenvalues (r, 1) above ``_LEADING / scale`` and their vectors (r, m), by
    block Lanczos with full orthogonalization; None if there are too many."""
    limit = len(a) // 4
    if limit < _FIRST_LOOK:
        return None
    basis = a.new_empty(limit + _BLOCK, len(a))
    # the lower triangle of A in this basis
    projected = a.new_zeros(limit, limit)
    basis[:_BLOCK] = torch.linalg.qr((start @ a).mT)[0].mT
    look = _FIRST_LOOK
    for size in range(_BLOCK, limit + 1, _BLOCK):
        known, last = basis[:size], slice(size - _BLOCK, size)
        image = basis[last] @ a
        overlap = image @ known.mT
        projected[last, :size] = overlap
        # twice, as what is left may be as small as the rounding
        image.addmm_(overlap, known, alpha=-1)
        image.addmm_(image @ known.mT, known, alpha=-1)
        following, coupling = torch.linalg.qr(image.mT)
        following = following.mT
        # again: next to a tiny image, rounding errors are no longer small
        basis[size : size + _BLOCK] = following.addmm(
            following @ known.mT, known, alpha=-1
        )
        if size < look:
            continue
        eigenvalues, mixing = torch.linalg.eigh(projected[:size, :size])
        leading = eigenvalues * scale > _LEADING
        mixing = mixing[:, leading]
        residuals = torch.linalg.vector_norm(coupling @ mixing[last], dim=0)
        if (residuals * scale <= _TOLERANCES[a.dtype]).all():
            return eigenvalues[leading].unsqueeze(-1), mixing.mT @ known
        enough = _PER_EIGENPAIR * mixing.size(1)
        if enough > limit:
            return None
        look = max(size + _GROWTH, enough)
    return None


def _norm_is_below_one(rest: Tensor, probes: Tensor, scale: float) -> bool:
    """Whether the norm of scale * rest is, by the growth of random rows."""
    for _ in range(16):
        probes = scale * (probes @ rest)
        if 8 * torch.linalg.vector_norm(probes, dim=-1).max() <= 1:
            return True
    return False


@cache
def _polynomial(num_iters: int, degree: int) -> tuple[float, ...]:
    r"""Coefficients, lowest first, of the polynomial through
    :math:`\varphi(x) = (1 - (1 - x / 2^T)^{2^T}) / x` at Chebyshev's nodes of
    [0, 1]."""
    count = degree + 1
    exponents = torch.arange(count, dtype=torch.float64, device='cpu')
    nodes = (1 + ((exponents + 0.5) * torch.pi / count).cos()) / 2
    values = newton_filter(nodes.sqrt(), 2.0**-num_iters, num_iters) / nodes.sqrt()
    return tuple(torch.linalg.solve(nodes[:, None] ** exponents, values).tolist())
