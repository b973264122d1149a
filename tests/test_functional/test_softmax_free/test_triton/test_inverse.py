"""Run for real on a GPU; elsewhere in the interpreter, by test_interpreter.py.

Legend: n matrices, m landmarks, d head dim, k columns.
"""

import os

import pytest
import torch

from mmlinattn.functional import (
    gaussian_kernel,
    newton_alpha,
    newton_pinv,
    softmax_free_attention,
)
from mmlinattn.functional.softmax_free.triton import available

pytest.importorskip('triton', minversion='3.0')
inverse = pytest.importorskip('mmlinattn.functional.softmax_free.triton.polynomial')

pytestmark = [pytest.mark.modern, pytest.mark.gpu]

# Of y, by the norm. One half is held to what an inverse in half precision may cost.
TOLERANCES = {1: 5e-5, 2: 3e-6}


@pytest.fixture(autouse=True)
def device():
    device = 'cpu' if os.environ.get('TRITON_INTERPRET') == '1' else 'cuda'
    if device == 'cuda' and not torch.cuda.is_available():
        pytest.skip('needs a GPU; test_interpreter.py runs it without')
    if not available(torch.empty(1, device=device)):
        pytest.skip('needs a GPU of compute capability 8.0 or later')
    return device


def relative_error(result, expected):
    return ((result - expected).norm() / expected.norm()).item()


@pytest.mark.parametrize('shape', [(1, 1), (7, 3), (70, 5)])
def test_own_kernel(shape, device):
    """Symmetric and with ones on its diagonal, exactly; far landmarks too."""
    q = torch.randn(2, 3, *shape, device=device)
    q[:, 0] *= 1e3
    kernel = gaussian_kernel(q)
    assert kernel.dtype == torch.float32
    assert torch.equal(kernel, kernel.mT)
    assert torch.equal(kernel.diagonal(dim1=-2, dim2=-1), torch.ones_like(q[..., 0]))
    difference = q.double().unsqueeze(-2) - q.double().unsqueeze(-3)
    expected = (-difference.square().sum(-1) / 2).exp()
    assert (kernel - expected).abs().max() < 1e-6
    # its gradient, as everywhere
    with torch.enable_grad():
        z = q[:1, 1:2].clone().requires_grad_()
        weights = torch.randn(shape[0], shape[0], device=device)
        (grad,) = torch.autograd.grad((gaussian_kernel(z) * weights).sum(), z)
        z = z.detach().double().requires_grad_()
        (right,) = torch.autograd.grad((gaussian_kernel(z) * weights).sum(), z)
    torch.testing.assert_close(grad.double(), right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize('size', (64, 192))
def test_parabola(size, device):
    """Of zeros beyond the matrix too."""
    x = torch.randn(1, size - 3, size - 3, device=device, dtype=torch.float64)
    x = x @ x.mT
    w = torch.zeros(1, size, size, device=device, dtype=torch.float64)
    w[:, 3:, 3:] = x / torch.linalg.matrix_norm(x, 2, keepdim=True)
    unit = inverse._UNIT.value
    high = (w * unit).half()
    low = (w * unit - high).half()
    found = inverse._parabola(high, low, 0.8)
    result = (found[0].double() + found[1]) / unit
    expected = 3.2 * w @ (torch.eye(size, device=device) - 0.8 * w)
    error = relative_error(result, expected)
    assert error < 3e-7
    assert not result[:, :3].any() and not result[:, :, :3].any()


# m, k: less than a block, odd, and more columns than a block takes
@pytest.mark.parametrize(
    'shape, halves',
    [((3, 1), 1), ((3, 1), 2), ((70, 20), 1), ((60, 20), 2), ((64, 130), 2)],
)
def test_operator(shape, halves, device):
    """Half of the eigenvalues are below the cut-off."""
    m, k = shape
    z = torch.randn(2, m, 4, device=device)
    a = gaussian_kernel(z)
    x = a @ torch.randn(2, m, k, device=device)
    x[0] *= 1e6
    x[:, :, 0] *= 1e-6
    expected = newton_pinv(a.double(), rhs=x.double(), solver='spectral')
    scale = (newton_alpha(a) / 2).sqrt()
    powers = inverse.polynomial_powers(a, scale, 20, halves)
    result = inverse.apply_polynomial(x, scale, powers, 20, halves)
    assert result.dtype == torch.float32
    for column in range(min(k, 3)):
        for found, right in zip(result[..., column], expected[..., column]):
            assert relative_error(found, right) < 4 * TOLERANCES[halves]


@pytest.mark.parametrize('num_iters', (18, 24))
def test_other_numbers_of_steps(num_iters, device):
    a = gaussian_kernel(torch.randn(1, 60, 3, device=device))
    x = a @ torch.randn(1, 60, 3, device=device)
    options = dict(num_iters=num_iters, rhs=x)
    expected = newton_pinv(a.double(), num_iters, x.double(), solver='spectral')
    result = newton_pinv(a, **options, solver='polynomial')
    assert relative_error(result, expected) < 1e-5


def test_equal_results(device):
    """Whatever ran before, and of any batch: matrices don't see each other."""
    a = gaussian_kernel(torch.randn(3, 40, 4, device=device))
    x = torch.randn(3, 40, 5, device=device)
    first = newton_pinv(a, rhs=x, solver='polynomial')
    assert torch.equal(first, newton_pinv(a, rhs=x, solver='polynomial'))
    alone = newton_pinv(a[1:2], rhs=x[1:2], solver='polynomial')
    assert torch.equal(first[1:2], alone)


def test_no_number_is_a_number(device):
    """NaN and zeros stay what they are, and in their columns."""
    a = gaussian_kernel(torch.randn(1, 33, 4, device=device))
    x = torch.randn(1, 33, 3, device=device)
    x[..., 1] = 0
    x[0, 5, 2] = float('nan')
    y = newton_pinv(a, rhs=x, solver='polynomial')
    assert y[..., 0].isfinite().all() and not y[..., 1].any()
    assert y[..., 2].isnan().all()


def attention_gradients(inputs, grad, **options):
    inputs = [x.detach().requires_grad_() for x in inputs]
    out = softmax_free_attention(*inputs, keep_kernel=False, **options)
    return [out.detach(), *torch.autograd.grad(out, inputs, grad)]


@pytest.mark.parametrize(
    'halves, dtype, tolerance',
    [(2, torch.float32, 1e-5), (1, torch.float32, 2e-3), (None, torch.bfloat16, 4e-3)],
)
def test_gradients_of_attention(halves, dtype, tolerance, device):
    """Through both products and the inverse, on more landmarks than directions."""
    torch.manual_seed(0)
    shapes = (130, 8), (60, 8), (130, 8), (130, 8)
    *inputs, grad = (torch.randn(1, 2, *s, device=device).to(dtype) for s in shapes)
    expected = attention_gradients(
        [x.double() for x in inputs], grad.double(), solver='spectral'
    )
    results = attention_gradients(inputs, grad, solver='polynomial', halves=halves)
    for result, right in zip(results, expected):
        assert result.dtype == dtype
        assert relative_error(result.double(), right) < tolerance
