"""Norm-aware linear attention as a matrix of weights.

Legend: B batch, h heads, N tokens, d head dim.
"""

import pytest
import torch
from equations import tokens
from torch.autograd import gradcheck

from mmlinattn.functional import norm_aware_attention, rotate


def query_features(q):
    """Each channel's part of the length, to the power of its query, by sign."""
    length = q.square().sum(-1, keepdim=True).sqrt()
    parts = q / length
    powers = parts.abs() ** (3 * (0.5 + length.tanh()))
    return [powers * (parts > 0), powers * (parts < 0)]


def key_features(k):
    return [k.abs() ** 3 * (k > 0), k.abs() ** 3 * (k < 0)]


def plain(q, k, v, hw_shape, steps):
    """In quadratic order: products of positive and of negative parts, rotated, over the
    sums of those that are not."""
    product = total = 0
    for one, other in zip(query_features(q), key_features(k)):
        turned = [rotate(x, hw_shape, steps) for x in (one, other)]
        product = product + turned[0] @ turned[1].mT
        total = total + (one @ other.mT).sum(-1, keepdim=True)
    return product @ v / (total + 1e-6 * k.size(-2))


@pytest.mark.parametrize(
    'shape, hw_shape',
    (
        ((2, 3, 35, 8), (5, 7)),
        ((1, 1, 1, 6), (1, 1)),
        ((2, 2, 7, 2), (2, 3)),
        ((1, 2, 20, 16), (4, 4)),
    ),
    ids=str,
)
def test_values_and_gradients(shape, hw_shape):
    arguments = [tokens(*shape).requires_grad_() for _ in range(3)]
    out = norm_aware_attention(*arguments, hw_shape, 3)
    expected = plain(*arguments, hw_shape, 3)
    torch.testing.assert_close(out, expected)
    grad = torch.randn_like(out)
    torch.testing.assert_close(
        torch.autograd.grad(out, arguments, grad),
        torch.autograd.grad(expected, arguments, grad),
    )


def test_gradients():
    arguments = [tokens(1, 2, 6, 4).requires_grad_() for _ in range(3)]
    assert gradcheck(lambda *x: norm_aware_attention(*x, (2, 3), 1), arguments)


def test_longer_queries_have_more_peaked_rows():
    """The direction alone gives all lengths the same row in other linear attentions."""
    q, k = tokens(1, 1, 1, 8), tokens(1, 1, 50, 8)
    peaks = []
    for length in (0.01, 0.5, 3):
        features = query_features(length * q / q.norm()), key_features(k)
        weights = sum(x @ y.mT for x, y in zip(*features))
        peaks.append((weights / weights.sum()).max())
    assert peaks == sorted(peaks) and peaks[-1] > 1.2 * peaks[0]


def test_a_query_of_zeros_gets_zeros():
    q, k, v = [tokens(1, 1, 6, 4) for _ in range(3)]
    q[..., 2, :] = 0
    q.requires_grad_()
    out = norm_aware_attention(q, k, v, (2, 3), 1)
    assert not out[..., 2, :].any() and out[..., 1, :].all()
    out.sum().backward()
    assert q.grad.isfinite().all()


@pytest.mark.parametrize('dtype', (torch.float16, torch.bfloat16))
def test_powers_beyond_half_precision(dtype):
    """float16 ends at 65504, and third powers go further."""
    q, k, v = [60 * tokens(1, 2, 64, 16) for _ in range(3)]
    half = [x.to(dtype) for x in (q, k, v)]
    assert (half[1].double() ** 3).max() > 65504
    out = norm_aware_attention(*half, (8, 8), 3)
    assert out.dtype == dtype
    expected = plain(*(x.double() for x in half), (8, 8), 3)
    torch.testing.assert_close(out.double(), expected, rtol=1e-2, atol=1e-1)
