"""The polynomial that replaces Newton-Raphson's steps.

Legend: n matrices, m landmarks, T steps.
"""

import pytest
import torch

from mmlinattn.functional.softmax_free.inverse import newton_filter
from mmlinattn.functional.softmax_free.polynomial import (
    FEWEST_STEPS,
    MOST_STEPS,
    apply_polynomial,
    newton_polynomial,
    polynomial_powers,
)

pytestmark = pytest.mark.modern


def applied_to_numbers(eigenvalues, alpha, num_iters, dtype):
    """The polynomial of matrices (n, 1, 1), one for each eigenvalue."""
    polynomial = newton_polynomial(num_iters, dtype)
    scale = torch.full_like(eigenvalues, alpha / 2).sqrt().view(-1, 1, 1)
    powers = polynomial_powers(polynomial, scale * eigenvalues.view(-1, 1, 1))
    out = apply_polynomial(polynomial, scale, powers, torch.ones_like(scale))
    return out.flatten()


@pytest.mark.parametrize('alpha', (1.0, 1e-5))
@pytest.mark.parametrize('num_iters', (FEWEST_STEPS, 20, MOST_STEPS))
@pytest.mark.parametrize(
    'dtype, tolerance', ((torch.float32, 1e-6), (torch.float64, 1e-12))
)
def test_every_eigenvalue(dtype, tolerance, num_iters, alpha):
    """Eigenvalues go up to the largest for a step size; some are tiny and negative."""
    largest = (2 * (1 - 1e-4) / alpha) ** 0.5
    eigenvalues = largest * torch.cat(
        (torch.logspace(-8, 0, 4000).double(), torch.linspace(0, 1, 4000).double()[1:])
    )
    expected = newton_filter(eigenvalues, alpha, num_iters)
    result = applied_to_numbers(eigenvalues, alpha, num_iters, dtype)
    # of 1 - r, the part of a component that is inverted
    error = (eigenvalues * (result - expected)).abs().max()
    assert error < tolerance
    # rounding errors of A move eigenvalues below zero
    below = -1e-7 * largest * torch.linspace(0, 1, 100).double()
    result = applied_to_numbers(below, alpha, num_iters, torch.float64)
    expected = newton_filter(below, alpha, num_iters)
    assert (below * (result - expected)).abs().max() < 1e-3
