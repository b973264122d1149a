"""The polynomial that stands for Newton-Raphson's steps.

Legend: n matrices, m landmarks, T steps.
"""

import pytest
import torch

from mmlinattn.functional import gaussian_kernel, newton_pinv
from mmlinattn.functional.softmax_free.inverse import newton_filter
from mmlinattn.functional.softmax_free.polynomial import (
    FEWEST_STEPS,
    MOST_STEPS,
    apply_polynomial,
    newton_polynomial,
    polynomial_powers,
)

pytestmark = pytest.mark.modern

# torch 2.1's compiler can't follow backward passes of our own
OLD_COMPILER = torch.__version__.startswith('2.1.')


def applied_to_numbers(eigenvalues, alpha, num_iters, dtype):
    """The polynomial of matrices (n, 1, 1), one for each eigenvalue."""
    polynomial = newton_polynomial(num_iters, dtype)
    scale = torch.full_like(eigenvalues, alpha / 2).sqrt().view(-1, 1, 1)
    powers = polynomial_powers(polynomial, scale * eigenvalues.view(-1, 1, 1))
    out = apply_polynomial(polynomial, scale, powers, torch.ones_like(scale))
    return out.flatten()


@pytest.mark.parametrize('alpha', (1.0, 1e-5))
@pytest.mark.parametrize('num_iters', range(FEWEST_STEPS, MOST_STEPS + 1))
@pytest.mark.parametrize(
    'dtype, tolerance', ((torch.float32, 1e-6), (torch.float64, 1e-12))
)
def test_every_eigenvalue(dtype, tolerance, num_iters, alpha):
    """Up to the largest that a step size allows, and tiny negative ones."""
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


def test_it_takes_few_products():
    """Newton-Raphson takes 40 of full size."""
    polynomial = newton_polynomial(20, torch.float32)
    assert len(polynomial.heights) == 5
    assert len(polynomial.coefficients) <= 18


def compiled(function):
    torch._dynamo.reset()
    return torch.compile(function, backend='aot_eager', fullgraph=True)


@pytest.mark.parametrize('solver', ('newton', 'polynomial'))
def test_one_graph(solver):
    a, x = gaussian_kernel(torch.randn(2, 3, 33, 4)), torch.randn(2, 3, 33, 5)

    def run(a, x):
        return newton_pinv(a, rhs=x, solver=solver)

    with torch.no_grad():
        torch.testing.assert_close(compiled(run)(a, x), run(a, x))
    if OLD_COMPILER:
        return
    leaves = a.requires_grad_(), x.requires_grad_()
    for result, expected in zip(
        torch.autograd.grad(compiled(run)(*leaves).square().sum(), leaves),
        torch.autograd.grad(run(*leaves).square().sum(), leaves),
    ):
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize('solver', ('newton', 'polynomial'))
def test_no_value_is_read(solver):
    """The meta device has none."""
    z = torch.randn(2, 3, 33, 4, device='meta', requires_grad=True)
    newton_pinv(gaussian_kernel(z), rhs=z, solver=solver).sum().backward()
    assert z.grad.shape == z.shape
