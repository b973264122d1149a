"""Legend: B batch, h heads, M queries, N keys, d head dim, e channels of values."""

import pytest
import torch
from equations import paper_kernel

from mmlinattn.functional import gaussian_attention
from mmlinattn.functional.softmax_free import kernel

# (B, h, M, N, d, e)
SHAPES = ((2, 3, 35, 9, 5, 5), (1, 1, 1, 1, 1, 1), (1, 2, 6, 17, 8, 3))
SOFTMAX = pytest.mark.parametrize('softmax', (False, True))


def inputs(shape, dtype=torch.float64):
    """Every other token is far from the rest, which are near each other: entries of the
    kernel are next to 0 and 1, where the series of the exponential is longest."""
    b, h, m, n, d, e = shape
    shapes = (b, h, m, d), (b, h, n, d), (b, h, n, e)
    q, k, v = (torch.randn(x, dtype=torch.float64) for x in shapes)
    for x in (q, k):
        x[..., 1::2, :] *= 0.1
    return [x.to(dtype) for x in (q, k, v)]


def paper_attention(q, k, v, softmax):
    """S V or softmax(S) V, entry by entry."""
    matrix = paper_kernel(q, k)
    if softmax:
        matrix = matrix.exp() / matrix.exp().sum(-1, keepdim=True)
    return matrix @ v


@SOFTMAX
@pytest.mark.parametrize('small', (0, kernel._SMALL))
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_value_and_gradients(shape, small, softmax, monkeypatch):
    """With kernels in memory, as for small maps on CPUs, and without."""
    monkeypatch.setattr(kernel, '_SMALL', small)
    args = [x.requires_grad_() for x in inputs(shape)]
    result = gaussian_attention(*args, softmax)
    expected = paper_attention(*args, softmax)
    torch.testing.assert_close(result, expected, rtol=2e-14, atol=2e-14)
    grad = torch.randn_like(expected)
    for ours, right in zip(
        torch.autograd.grad(result, args, grad),
        torch.autograd.grad(expected, args, grad),
    ):
        torch.testing.assert_close(ours, right, rtol=1e-11, atol=1e-11)


@SOFTMAX
@pytest.mark.parametrize(
    'dtype, tolerance', ((torch.float32, 1e-6), (torch.bfloat16, 1e-2))
)
def test_lower_precision(dtype, tolerance, softmax):
    """Of many tokens, the terms of the series add no error; half precision is that of
    the tokens and the result."""
    q, k, v = inputs((1, 2, 300, 1500, 16, 16), dtype)
    result = gaussian_attention(q, k, v, softmax)
    assert result.dtype == dtype
    exact = paper_attention(q.double(), k.double(), v.double(), softmax)
    assert (result - exact).norm() < tolerance * exact.norm()
