"""Rotary positions as complex numbers, and the attentions that have them as matrices.

Legend: (H, W) map, N = H * W tokens + extra ones, h heads, d head dim.
"""

import pytest
import torch
from torch.nn.functional import elu, pad

from mmlinattn.functional import (
    magnitude_aware_attention,
    mlla_attention,
    rank_augmented_attention,
    rotate,
)

pytestmark = pytest.mark.modern

CASES = pytest.mark.parametrize(
    'hw_shape, num_extra', (((5, 7), 0), ((3, 2), 2), ((1, 1), 0)), ids=str
)


def tokens(*shape):
    return torch.randn(shape, dtype=torch.float64)


def turned(x, hw_shape, steps):
    positions = torch.cartesian_prod(*(torch.arange(side) for side in hw_shape))
    frequencies = 10000 ** (-torch.arange(x.size(-1) // 4, dtype=x.dtype) / steps)
    angles = (positions.view(-1, 2, 1) * frequencies).flatten(1)  # rows, then columns
    left_over = x.size(-1) // 2 - angles.size(1)
    angles = pad(angles, (0, left_over, x.size(-2) - len(angles), 0))
    numbers = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    numbers = numbers * torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(numbers).flatten(-2)


def linear(q, k, v, turned_q, turned_k):
    sums = (q @ k.mT).sum(-1, keepdim=True) + 1e-6 * k.size(-2)
    return turned_q @ turned_k.mT / sums @ v


@CASES
@pytest.mark.parametrize('dims, steps', ((12, 3), (8, 1), (6, 1), (2, 1)))
def test_pairs_of_channels_are_complex_numbers(dims, steps, hw_shape, num_extra):
    x = tokens(2, 3, num_extra + hw_shape[0] * hw_shape[1], dims)
    out = rotate(x, hw_shape, steps)
    torch.testing.assert_close(out, turned(x, hw_shape, steps))
    single = rotate(x.bfloat16(), hw_shape, steps)
    assert single.dtype == torch.float32
    torch.testing.assert_close(single, out.float(), rtol=0.02, atol=0.02)


def test_far_positions_are_exact():
    """A map of 4000 x 1 tokens is exact, as far as float32 has integers and angles."""
    x = tokens(4000, 32)
    out = rotate(x.float(), (4000, 1), 8)
    torch.testing.assert_close(out.double(), rotate(x, (4000, 1), 8), rtol=0, atol=2e-3)


@CASES
def test_mlla(hw_shape, num_extra):
    """All channels are turned together, before the heads are split off."""
    q, k, v = tokens(3, 2, num_extra + hw_shape[0] * hw_shape[1], 24)
    features = [elu(x) + 1 for x in (q, k)]
    parts = *features, v, *(turned(x, hw_shape, 6) for x in features)
    heads = [x.unflatten(-1, (4, 6)).transpose(1, 2) for x in parts]
    out = mlla_attention(q, k, v, hw_shape, num_heads=4)
    torch.testing.assert_close(out, linear(*heads))


@CASES
def test_rank_augmented(hw_shape, num_extra):
    q, k, v = tokens(3, 2, 4, num_extra + hw_shape[0] * hw_shape[1], 8)
    out = rank_augmented_attention(q, k, v, hw_shape, steps=1)
    q, k = elu(q) + 1, elu(k) + 1
    weights = (q.mean(-2, keepdim=True) @ k.mT / 8**0.5).softmax(-1)
    k = k * weights.mT * k.size(-2)
    turns = [turned(x, hw_shape, 1) for x in (q, k)]
    torch.testing.assert_close(out, linear(q, k, v, *turns))


@CASES
def test_magnitude_aware(hw_shape, num_extra):
    q, k, v = tokens(3, 2, 4, num_extra + hw_shape[0] * hw_shape[1], 8)
    out = magnitude_aware_attention(q, k, v, hw_shape, steps=1)
    q, k = elu(q) + 1, elu(k) + 1
    turned_q, turned_k = [turned(x, hw_shape, 1) for x in (q, k)]
    num_tokens = k.size(-2)
    products, plain = [
        a @ b.mT / (num_tokens * 8**0.5) for a, b in ((turned_q, turned_k), (q, k))
    ]
    sums = plain.sum(-1, keepdim=True)
    weights = (1 + 1 / (sums + 1e-6)) * products - sums / num_tokens
    torch.testing.assert_close(out, weights @ v)
