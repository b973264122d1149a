"""Ways to apply the inverse of the landmarks' matrix A to a right-hand side.

'newton', 'polynomial', 'spectral' and 'lanczos' compute the same operator, T
Newton-Raphson steps; 'cholesky' computes another one, the inverse itself.

Legend: ... batch and heads, m landmarks, k columns of a right-hand side, T steps.
"""

import math
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple, Optional, Protocol

import torch
from torch import Tensor

from ..threads import one_thread
from ..tracing import is_exported
from . import polynomial
from .halves import halves_pay, parabola_of_halves
from .lanczos import Deflated, apply_deflated, deflate
from .newton import newton_alpha, newton_filter, newton_steps, newton_steps_of_halves
from .products import kernels_run

# More steps change nothing: in float64, the cut-off of small eigenvalues, 2^(-T/2)
# of the norm of A, is then below the rounding errors of large ones.
MAX_ITERS = 100
# From this size on, one eigendecomposition costs a CPU less than 40 products,
_SPECTRAL_FROM = 96
# and from this one on, its largest eigenpairs cost less than all.
_LANCZOS_FROM = 640
# From this one on, a GPU has less to do for five products than for 40.
_POLYNOMIAL_FROM = 256


# What a solver keeps of a matrix: tensors, and None where one is missing.
Prepared = Sequence[Any]


class Solver(Protocol):
    """One way to apply one operator."""

    def prepare(self, a: Tensor, alpha: Optional[Tensor] = None) -> Prepared:
        """Does the work that depends on A only.

        Args:
            a (Tensor): Symmetric matrices in float32 or float64, (..., m, m).
            alpha (Tensor, optional): Step size of Newton-Raphson, (..., 1, 1).
                Default: :func:`~.newton.newton_alpha`.

        Returns:
            tuple[Tensor | None]: The argument ``prepared`` of the other methods.
        """

    def apply(self, prepared: Prepared, x: Tensor) -> Tensor:
        """Multiplies x by the operator, (..., m, k) to (..., m, k)."""

    def apply_transposed(self, prepared: Prepared, x: Tensor) -> Tensor:
        """Multiplies x by its transpose, (..., m, k) to (..., m, k)."""


class NewtonSolver(NamedTuple):
    """Runs the steps, for all matrices at once; where that is faster, on tensor cores
    that multiply half precision (:mod:`.halves`)."""

    num_iters: int

    def prepare(self, a: Tensor, alpha: Optional[Tensor] = None) -> Prepared:
        steps = newton_steps_of_halves if halves_pay(a) else newton_steps
        with one_thread(a, below=_SPECTRAL_FROM):
            return (steps(a, _step_size(a, alpha), self.num_iters),)

    def apply(self, prepared: Prepared, x: Tensor) -> Tensor:
        return prepared[0] @ x

    def apply_transposed(self, prepared: Prepared, x: Tensor) -> Tensor:
        # rounding errors make the result not exactly symmetric
        return prepared[0].mT @ x


class PolynomialSolver(NamedTuple):
    """Applies the operator as a polynomial in A, which has to be positive
    semi-definite, for all matrices at once: five products instead of 40.

    Attributes:
        num_iters (int): T.
        halves (int): Float16 numbers that the Triton kernels round a factor's entries
            to the sum of where errors count less, 1 or 2.
    """

    num_iters: int
    halves: int = 2

    def prepare(self, a: Tensor, alpha: Optional[Tensor] = None) -> Prepared:
        scale = (_step_size(a, alpha) / 2).sqrt().expand(*a.shape[:-2], 1, 1)
        a, scale = _one_by_one(a), _one_by_one(scale)
        if a.dtype == torch.float32 and kernels_run(a, max_dim=math.inf):
            from .triton.polynomial import polynomial_powers  # imports Triton

            return scale, *polynomial_powers(a, scale, self.num_iters, self.halves)
        step = parabola_of_halves if halves_pay(a) else polynomial.parabola
        found = self._polynomial(a)
        return scale, *polynomial.polynomial_powers(found, scale * a, step)

    def apply(self, prepared: Prepared, x: Tensor) -> Tensor:
        scale, *powers = prepared
        if powers[0].dtype == torch.float16:
            from .triton.polynomial import apply_polynomial  # imports Triton

            args = scale, powers, self.num_iters, self.halves
            return apply_polynomial(_one_by_one(x), *args).view(x.shape)
        y = polynomial.apply_polynomial(
            self._polynomial(x), scale, powers, _one_by_one(x)
        )
        return y.view(x.shape)

    def apply_transposed(self, prepared: Prepared, x: Tensor) -> Tensor:
        return self.apply(prepared, x)

    def _polynomial(self, x: Tensor) -> polynomial.Polynomial:
        return polynomial.newton_polynomial(self.num_iters, x.dtype)


class SpectralSolver(NamedTuple):
    """Applies the effect of the steps to every eigenvalue."""

    num_iters: int

    def prepare(self, a: Tensor, alpha: Optional[Tensor] = None) -> Prepared:
        with one_thread(a, below=_LANCZOS_FROM):
            eigenvalues, vectors = torch.linalg.eigh(a)
        alpha = _step_size(a, alpha)
        return vectors, newton_filter(eigenvalues.unsqueeze(-1), alpha, self.num_iters)

    def apply(self, prepared: Prepared, x: Tensor) -> Tensor:
        vectors, filtered = prepared
        return vectors @ (filtered * (vectors.mT @ x))

    def apply_transposed(self, prepared: Prepared, x: Tensor) -> Tensor:
        return self.apply(prepared, x)


class LanczosSolver(NamedTuple):
    """Applies it to the large eigenvalues only, one matrix after the other."""

    num_iters: int

    def prepare(self, a: Tensor, alpha: Optional[Tensor] = None) -> Prepared:
        alphas = _step_size(a, alpha).expand(*a.shape[:-2], 1, 1).flatten().tolist()
        return tuple(
            field
            for matrix, step in zip(_one_by_one(a), alphas)
            for field in deflate(matrix, step, self.num_iters)
        )

    def apply(self, prepared: Prepared, x: Tensor) -> Tensor:
        each = zip(*(iter(prepared),) * len(Deflated._fields))
        y = x.new_empty(x.shape)
        for y_i, x_i, fields in zip(_one_by_one(y), _one_by_one(x), each):
            y_i.copy_(apply_deflated(Deflated(*fields), x_i, self.num_iters))
        return y

    def apply_transposed(self, prepared: Prepared, x: Tensor) -> Tensor:
        return self.apply(prepared, x)


class CholeskySolver(NamedTuple):
    """The inverse of a positive definite matrix, by its factorization."""

    def prepare(self, a: Tensor, alpha: Optional[Tensor] = None) -> Prepared:
        return (torch.linalg.cholesky(a),)

    def apply(self, prepared: Prepared, x: Tensor) -> Tensor:
        return torch.cholesky_solve(x, prepared[0])

    def apply_transposed(self, prepared: Prepared, x: Tensor) -> Tensor:
        return self.apply(prepared, x)


# Solvers of the operator of Newton-Raphson, made for a number of steps.
NEWTON_SOLVERS: dict[str, Callable[[int], Solver]] = {
    'newton': NewtonSolver,
    'polynomial': PolynomialSolver,
    'spectral': SpectralSolver,
    'lanczos': LanczosSolver,
}
SOLVERS = ('auto', *NEWTON_SOLVERS, 'cholesky')


def make_solver(
    name: str, num_iters: int, a: Tensor, halves: int = 2, semidefinite: bool = True
) -> Solver:
    """The solver that a name stands for.

    Args:
        name (str): One of ``SOLVERS``; 'auto' is the fastest way to the operator
            of Newton-Raphson on a device at a size, whatever the values.
        num_iters (int): Newton-Raphson steps; 'cholesky' has none.
        a (Tensor): Matrices of the device and size, (..., m, m).
        halves (int): As for :class:`PolynomialSolver`.
        semidefinite (bool): Whether the matrices are known to be positive
            semi-definite; 'auto' takes 'polynomial' for no others.

    Returns:
        Solver: The solver.
    """
    if name == 'cholesky':
        return CholeskySolver()
    if is_exported():  # its steps are the one way without a branch on values
        name = 'newton'
    elif name == 'auto':
        name = pick_solver(a.device.type, a.size(-1), num_iters)
        if name == 'polynomial' and not semidefinite:
            name = 'newton'
    if name == 'polynomial':
        return PolynomialSolver(num_iters, halves)
    return NEWTON_SOLVERS[name](num_iters)


def pick_solver(device_type: str, num_landmarks: int, num_iters: int) -> str:
    """Name of the solver that 'auto' stands for on a device at a size.

    On a CPU it is the fastest by measurement, elsewhere by the model of
    ``benchmarks/cost_model.py``.
    """
    if device_type != 'cpu':
        in_range = polynomial.MIN_ITERS <= num_iters <= polynomial.MAX_ITERS
        return (
            'polynomial' if in_range and num_landmarks >= _POLYNOMIAL_FROM else 'newton'
        )
    if num_landmarks < _SPECTRAL_FROM:
        return 'newton'
    return 'spectral' if num_landmarks < _LANCZOS_FROM else 'lanczos'


def check_solver(
    solver: str,
    num_iters: int = 20,
    ridge: float = 0.0,
    solvers: tuple[str, ...] = SOLVERS,
) -> None:
    """Raises an error for options of the inversion that make no sense.

    Raises:
        ValueError: If ``solver`` is unknown, ``num_iters`` is no integer in
            1...100, ``ridge`` is negative or not finite, or 'cholesky' is asked
            for without a positive ``ridge``, or 'polynomial' for fewer than 18 or
            more than 24 steps.
    """
    if solver not in solvers:
        raise ValueError(f'solver must be one of {solvers}, got {solver!r}')
    if not isinstance(num_iters, int) or not 1 <= num_iters <= MAX_ITERS:
        raise ValueError(
            f'num_iters must be an integer in 1...{MAX_ITERS}, got {num_iters!r}'
        )
    fewest, most = polynomial.MIN_ITERS, polynomial.MAX_ITERS
    if solver == 'polynomial' and not fewest <= num_iters <= most:
        raise ValueError(
            f"solver='polynomial' takes num_iters in {fewest}...{most}, got "
            f"{num_iters}; solver='newton' takes any"
        )
    if not (ridge >= 0 and math.isfinite(ridge)):
        raise ValueError(f'ridge must be finite and not negative, got {ridge}')
    if solver == 'cholesky' and not ridge:
        raise ValueError(f"solver='cholesky' needs a positive ridge, got ridge={ridge}")


def _step_size(a: Tensor, alpha: Optional[Tensor]) -> Tensor:
    return newton_alpha(a) if alpha is None else alpha


def _one_by_one(x: Tensor) -> Tensor:
    return x.unsqueeze(0).flatten(0, -3)
