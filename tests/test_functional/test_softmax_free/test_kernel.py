"""Legend: B batch, h heads, M rows, N columns, d head dim, e channels of values."""

from functools import partial

import pytest
import torch
from equations import Largest, paper_kernel, relative_error, tokens

from mmlinattn.functional import gaussian_attention, gaussian_kernel, gaussian_product
from mmlinattn.functional.softmax_free import kernel

# (B, h, M, N, d, e)
SHAPES = ((2, 3, 63, 9, 5, 5), (1, 1, 1, 1, 1, 1), (1, 2, 49, 130, 7, 11))
# Of tokens ~ N(0, 1): those of images are smaller.
TOKENS = {
    'natural': lambda x: 0.4 * x,
    'smooth': lambda x: (x / 3).cumsum(-2) / 9,
    'equal': lambda x: x[..., :1, :].expand_as(x),
    'far-from-0': lambda x: 30 + 0.4 * x,
    'extreme': lambda x: 1e4 * x,
}


def fused(q, k, v, chunks=1):
    return kernel._fused_product(*kernel._lifted(q, k), v, chunks)


# Ways to the product: with the kernel of a small map, by softmax attention, so in
# chunks for GPUs, in pieces for exported files.
WAYS = {
    'explicit': gaussian_product,
    'fused': fused,
    'chunks': partial(fused, chunks=7),
    'pieces': kernel._product_in_pieces,
}
HALF_ON_CPU = not torch.__version__.startswith('2.1.')


def inputs(shape, kind='natural', dtype=torch.float64):
    b, h, m, n, d, e = shape
    q, k, v = tokens(b, h, m, d), tokens(b, h, n, d), tokens(b, h, n, e)
    q, k = TOKENS[kind](q).clone(), TOKENS[kind](k)
    least = min(m, n)
    q[:, :, :least:3] = k[:, :, :least:3]  # some tokens of both are equal
    return q.to(dtype), k.to(dtype), v.to(dtype)


@pytest.mark.parametrize('kind', TOKENS)
def test_kernel_of_tokens_with_themselves(kind):
    q = inputs((1, 2, 50, 9, 8, 8), kind, torch.float32)[0].requires_grad_()
    result = gaussian_kernel(q)
    diagonal = result.diagonal(dim1=-2, dim2=-1)
    assert diagonal.equal(torch.ones_like(diagonal))
    # a call with the same tensor twice is another one
    assert gaussian_kernel(q, q).equal(gaussian_kernel(q, q.clone()))
    exact = q.detach().double().requires_grad_()
    expected, grad = paper_kernel(exact, exact), torch.randn_like(result)
    if kind != 'extreme':  # float32 has no digit left there
        assert relative_error(result, expected) < 1e-5
        (right,) = torch.autograd.grad(expected, exact, grad.double())
        (result,) = torch.autograd.grad(result, q, grad)
        torch.testing.assert_close(result.double(), right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize('way', WAYS)
@pytest.mark.parametrize('kind', TOKENS)
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_product_and_gradients(shape, kind, way):
    args = [x.requires_grad_() for x in inputs(shape, kind)]
    result, expected = WAYS[way](*args), paper_kernel(*args[:2]) @ args[2]
    # the cancellation of float64 in tokens of 1e4
    tolerance = 1e-5 if kind == 'extreme' else 1e-11
    torch.testing.assert_close(result, expected, rtol=tolerance, atol=tolerance)
    grad = torch.randn_like(expected)
    for x, right in zip(
        torch.autograd.grad(result, args, grad),
        torch.autograd.grad(expected, args, grad),
    ):
        torch.testing.assert_close(x, right, rtol=tolerance, atol=100 * tolerance)


@pytest.mark.parametrize('kind, tolerance', (('natural', 2e-6), ('far-from-0', 2e-5)))
@pytest.mark.parametrize('way', WAYS)
def test_float32(way, kind, tolerance):
    """Without the shift, tokens far from 0 would have no digit in common."""
    args = inputs((1, 2, 130, 700, 32, 32), kind)
    exact = paper_kernel(*args[:2]) @ args[2]
    result = WAYS[way](*(x.float() for x in args))
    assert result.dtype == torch.float32
    assert relative_error(result, exact) < tolerance


@pytest.mark.skipif(not HALF_ON_CPU, reason='no float16 on CPUs')
@pytest.mark.parametrize('distance, tolerance', ((0.0, 2e-3), (4.8, 3e-2)))
def test_row_sums_in_float16(distance, tolerance):
    """67,200 equal tokens have the sum 67,200; 4.8 from one token, it is 1e-5."""
    count = 1 if distance else 67200
    k = torch.ones(1, 1, count, 8, dtype=torch.float16)
    q = k[:, :, :1].clone()
    q[..., 0] += distance
    result = fused(q, k, k)
    exact = count * paper_kernel(q.double(), k[:, :, :1].double()) * torch.ones(8)
    assert relative_error(result, exact) < tolerance


@pytest.mark.parametrize(
    'product',
    (gaussian_product, gaussian_attention, partial(gaussian_attention, softmax=True)),
)
@pytest.mark.parametrize('rows, columns', ((3000, 200), (200, 3000)))
def test_memory(rows, columns, product):
    """Nothing is as large as the kernel matrix or its softmax, forward or backward."""
    q, k, v = (x.requires_grad_() for x in inputs((1, 1, rows, columns, 4, 4)))
    with Largest() as largest:
        product(q, k, v).sum().backward()
    assert rows * columns > kernel._SMALL
    assert 3000 <= largest.entries <= 3001 * 6
