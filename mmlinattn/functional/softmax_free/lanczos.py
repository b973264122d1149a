r"""Newton-Raphson's operator from the large eigenvalues of a big matrix only.

In A's eigenbasis the operator is :math:`\lambda c \varphi(c\lambda^2)` with
:math:`c = 2^T \alpha` and a smooth :math:`\varphi`. Below the cut-off
:math:`c^{-1/2}` a polynomial of degree 4 has float32's accuracy. Above it there are few
eigenvalues in a natural image, and block Lanczos finds them in about ten products with
16 columns.

Legend: m landmarks, k columns of a right-hand side, r eigenpairs, T steps.
"""

from functools import cache
from typing import Optional

import torch
from torch import Tensor

# Eigenvalues (r, 1), their vectors (r, m), and the rest of the matrix (m, m).
Split = tuple[Tensor, Tensor, Optional[Tensor]]
# The cut-off must be this many times the mean eigenvalue. Otherwise too many
# eigenvalues are large, and the search for them does not pay off.
_CUT_OFF_OVER_MEAN = 1.5
# Columns of a Krylov block; size of the basis at the first look at its eigenpairs, its
# least growth until the next look, and its size for each eigenpair wanted.
_BLOCK = 16
_FIRST_LOOK, _GROWTH, _PER_EIGENPAIR = 96, 32, 2.75
# Eigenpairs above this are computed; the polynomial on [0, 1] does the others. Both
# are in units of the cut-off.
_LEADING = 0.8
# Degree of the polynomial in the square, and the largest error of it and of an
# eigenpair.
_DEGREES = {torch.float32: 4, torch.float64: 11}
_TOLERANCES = {torch.float32: 1e-5, torch.float64: 1e-12}


def deflate(a: Tensor, slope: Tensor) -> Optional[Split]:
    r"""Splits a matrix into :math:`Q^T diag(\lambda) Q + R`.

    A test makes sure that no large eigenvalue is missed: the norm of R is below the
    cut-off with probability 1 - 1e-16 (Halko, Martinsson and Tropp, *Finding Structure
    with Randomness*, arXiv 0909.4061, lemma 4.1). The matrix is symmetric, (m, m), on a
    CPU, and the slope is c. None if too many eigenvalues are large, about 90 of 1,050.
    """
    scale = slope.item() ** 0.5
    if 1 / scale <= _CUT_OFF_OVER_MEAN * a.diagonal().mean():
        return None
    generator = torch.Generator().manual_seed(0)
    start, probes = torch.randn(
        2, _BLOCK, len(a), generator=generator, dtype=a.dtype, device='cpu'
    )
    pairs = _leading_eigenpairs(a, start, scale)
    if pairs is None:
        return None
    eigenvalues, vectors = pairs
    rest = torch.addmm(a, (eigenvalues * vectors).mT, vectors, alpha=-1)
    for _ in range(16):
        probes = scale * (probes @ rest)
        if 8 * torch.linalg.vector_norm(probes, dim=-1).max() <= 1:
            return eigenvalues, vectors, rest
    return None


def apply_rest(rest: Tensor, slope: Tensor, x: Tensor, num_iters: int) -> Tensor:
    """T steps' operator times x, (m, k), for a matrix (m, m) below the cut-off."""
    *coefficients, highest = _phi(num_iters, _DEGREES[x.dtype])
    c = slope.item()
    y = highest * x
    for coefficient in reversed(coefficients):
        y = torch.addmm(x, rest, rest @ y, beta=coefficient, alpha=c)
    return c * (rest @ y)


def _leading_eigenpairs(
    a: Tensor, start: Tensor, scale: float
) -> Optional[tuple[Tensor, Tensor]]:
    """Eigenvalues (r, 1) above ``_LEADING / scale`` and their vectors (r, m), by
    block Lanczos with full orthogonalization; None if there are too many."""
    limit = len(a) // 4
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
        # twice, since the rest may be as small as the rounding
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


@cache
def _phi(num_iters: int, degree: int) -> tuple[float, ...]:
    r"""Coefficients, lowest first, of the polynomial through
    :math:`\varphi(x) = (1 - (1 - x / 2^T)^{2^T}) / x` at Chebyshev's nodes of
    [0, 1]."""
    count = degree + 1
    exponents = torch.arange(count, dtype=torch.float64, device='cpu')
    nodes = (1 + ((exponents + 0.5) * torch.pi / count).cos()) / 2
    values = -torch.expm1(2**num_iters * torch.log1p(-nodes / 2**num_iters)) / nodes
    return tuple(torch.linalg.solve(nodes[:, None] ** exponents, values).tolist())
