"""The polynomial that stands for Newton-Raphson's steps, and products of halves.

Legend: n matrices, m landmarks, T steps.
"""

import pytest
import torch
from torch.autograd import gradcheck

from mmlinattn.functional import gaussian_kernel, newton_alpha, newton_pinv
from mmlinattn.functional.softmax_free import solvers
from mmlinattn.functional.softmax_free.halves import (
    halves_pay,
    left_halves,
    parabola_of_halves,
    product_of_halves,
    right_halves,
)
from mmlinattn.functional.softmax_free.newton import (
    newton_filter,
    newton_steps,
    newton_steps_of_halves,
)
from mmlinattn.functional.softmax_free.polynomial import (
    MAX_ITERS,
    MIN_ITERS,
    apply_polynomial,
    newton_polynomial,
    parabola,
    polynomial_powers,
)

pytestmark = pytest.mark.modern

# torch 2.1's compiler can't follow backward passes of our own
OLD_COMPILER = torch.__version__.startswith('2.1.')


def relative_error(result, expected):
    return ((result - expected).norm() / expected.norm()).item()


def applied_to_numbers(eigenvalues, alpha, num_iters, dtype):
    """The polynomial of matrices (n, 1, 1), one for each eigenvalue."""
    polynomial = newton_polynomial(num_iters, dtype)
    scale = torch.full_like(eigenvalues, alpha / 2).sqrt().view(-1, 1, 1)
    powers = polynomial_powers(polynomial, scale * eigenvalues.view(-1, 1, 1), parabola)
    out = apply_polynomial(polynomial, scale, powers, torch.ones_like(scale))
    return out.flatten()


@pytest.mark.parametrize('alpha', (1.0, 1e-5))
@pytest.mark.parametrize('num_iters', range(MIN_ITERS, MAX_ITERS + 1))
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


def symmetric(n, m, dtype=torch.float32):
    """Of eigenvalues in [0, 1]."""
    x = torch.randn(n, m, m, dtype=torch.float64)
    x = x @ x.mT
    return (x / torch.linalg.matrix_norm(x, 2, keepdim=True)).to(dtype)


@pytest.mark.parametrize('m', (1, 2, 7, 49, 130))
@pytest.mark.parametrize('size', (1.0, 1e-4))
def test_parabola_of_halves(m, size):
    w = size * symmetric(2, m)
    result = parabola_of_halves(w, 0.7)
    assert result.dtype == torch.float32
    expected = parabola(w.double(), 0.7)
    torch.testing.assert_close(
        expected, 2.8 * w.double() @ (torch.eye(m) - 0.7 * w.double())
    )
    assert relative_error(result, expected) < 1e-6
    # without the small parts it is far from it
    high = (2.0**15 * w).half().double() / 2**15
    if m > 2 and size == 1:
        assert relative_error(parabola(high, 0.7), expected) > 1e-4


@pytest.mark.parametrize('m', (1, 2, 7, 49, 130))
def test_product_of_halves(m):
    x, y = symmetric(2, m), symmetric(2, m) / 300
    result = product_of_halves(left_halves(x), right_halves(y))
    assert relative_error(result, x.double() @ y.double()) < 2e-6


@pytest.mark.parametrize('num_iters', (1, 2, 5, 20))
def test_newton_of_halves(num_iters):
    a = gaussian_kernel(1.5 * torch.randn(2, 49, 16, dtype=torch.float64))
    alpha = newton_alpha(a) / 2
    expected = newton_steps(a, alpha, num_iters)
    result = newton_steps_of_halves(a.float(), alpha.float(), num_iters)
    assert result.dtype == torch.float32
    assert relative_error(result.double(), expected) < 1e-5


def test_halves_need_a_gpu():
    assert not halves_pay(torch.eye(3))
    assert not halves_pay(torch.eye(3, device='meta'))


@pytest.mark.parametrize('solver', ('newton', 'polynomial'))
@pytest.mark.parametrize('halved', (False, True))
def test_solvers_on_a_smooth_matrix(solver, halved, monkeypatch):
    """Half of the eigenvalues are below the cut-off."""
    monkeypatch.setattr(solvers, 'halves_pay', lambda a: halved)
    z = torch.randn(3, 2, 120, 6, dtype=torch.float64)
    a = gaussian_kernel(z)
    x = a @ torch.randn(3, 2, 120, 5, dtype=torch.float64)
    expected = newton_pinv(a, rhs=x, solver='spectral')
    result = newton_pinv(a.float(), rhs=x.float(), solver=solver)
    assert relative_error(result.double(), expected) < 1e-5


GRAPHS = pytest.mark.parametrize(
    'solver, halved',
    (('newton', False), ('newton', True), ('polynomial', False), ('polynomial', True)),
)


def compiled(function):
    torch._dynamo.reset()
    return torch.compile(function, backend='aot_eager', fullgraph=True)


@GRAPHS
def test_one_graph(solver, halved, monkeypatch):
    monkeypatch.setattr(solvers, 'halves_pay', lambda a: halved)
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


@GRAPHS
def test_no_value_is_read(solver, halved, monkeypatch):
    """The meta device has none."""
    monkeypatch.setattr(solvers, 'halves_pay', lambda a: halved)
    z = torch.randn(2, 3, 33, 4, device='meta', requires_grad=True)
    newton_pinv(gaussian_kernel(z), rhs=z, solver=solver).sum().backward()
    assert z.grad.shape == z.shape


def test_gradcheck_of_the_polynomial():
    z = 2 * torch.randn(2, 5, 4, dtype=torch.float64)
    x = torch.randn(2, 5, 3, dtype=torch.float64)

    def function(z, x):
        return newton_pinv(gaussian_kernel(z), rhs=x, solver='polynomial')

    assert gradcheck(function, (z.requires_grad_(), x.requires_grad_()))


def test_auto_of_an_indefinite_matrix(monkeypatch):
    """The polynomial would be wrong by orders of magnitude, and no GPU says so."""
    monkeypatch.setattr(solvers, 'pick_solver', lambda *args: 'polynomial')
    x = torch.randn(6, 6, dtype=torch.float64)
    x = torch.linalg.qr(x)[0]
    a = x @ torch.diag(torch.tensor([3.0, 2.0, 1.0, -1.0, -2.0, 0.5])).double() @ x.mT
    alpha = torch.full((1, 1), 0.1, dtype=torch.float64)
    results = {
        solver: newton_pinv(a, alpha=alpha, solver=solver)
        for solver in ('auto', 'newton', 'spectral', 'polynomial')
    }
    assert torch.equal(results['auto'], results['newton'])
    torch.testing.assert_close(results['auto'], results['spectral'])
    # or NaN
    assert not relative_error(results['polynomial'], results['spectral']) < 1


def test_what_auto_stands_for():
    pick = solvers.pick_solver
    assert pick('cuda', 1050, 20) == 'polynomial'
    assert pick('cuda', 49, 20) == 'newton'
    # too few steps for it, or too many
    assert pick('cuda', 1050, 10) == pick('cuda', 1050, 30) == 'newton'
    assert pick('cpu', 1050, 20) == 'lanczos'
