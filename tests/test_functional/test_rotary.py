"""Rotary positions as complex numbers; tests of weights have the official attentions.

Legend: (H, W) map, N = H * W tokens + extra ones, h heads, d head dim.
"""

import pytest
import torch
from equations import tokens
from torch.nn.functional import pad

from mmlinattn.functional import rotate, rotate_both


def turned(x, hw_shape, steps):
    positions = torch.cartesian_prod(*(torch.arange(side) for side in hw_shape))
    frequencies = 10000 ** (-torch.arange(x.size(-1) // 4, dtype=x.dtype) / steps)
    angles = (positions.view(-1, 2, 1) * frequencies).flatten(1)  # rows, then columns
    left_over = x.size(-1) // 2 - angles.size(1)
    angles = pad(angles, (0, left_over, x.size(-2) - len(angles), 0))
    numbers = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    numbers = numbers * torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(numbers).flatten(-2)


@pytest.mark.parametrize(
    'hw_shape, num_extra', (((5, 7), 0), ((3, 2), 2), ((1, 1), 0)), ids=str
)
@pytest.mark.parametrize('dims, steps', ((12, 3), (8, 1), (6, 1), (2, 1)))
def test_pairs_of_channels_are_complex_numbers(dims, steps, hw_shape, num_extra):
    x = tokens(2, 3, num_extra + hw_shape[0] * hw_shape[1], dims)
    out = rotate(x, hw_shape, steps)
    torch.testing.assert_close(out, turned(x, hw_shape, steps))
    single = rotate(x.bfloat16(), hw_shape, steps)
    assert single.dtype == torch.float32
    torch.testing.assert_close(single, out.float(), rtol=0.02, atol=0.02)


def test_both_are_each():
    q, k = tokens(2, 3, 37, 12), tokens(2, 3, 37, 12)
    for out, x in zip(rotate_both(q, k, (5, 7), 3), (q, k)):
        assert out.equal(rotate(x, (5, 7), 3))


def test_far_positions_are_exact():
    """A map of 4000 x 1 tokens is exact, as far as float32 has integers and angles."""
    x = tokens(4000, 32)
    out = rotate(x.float(), (4000, 1), 8)
    torch.testing.assert_close(out.double(), rotate(x, (4000, 1), 8), rtol=0, atol=2e-3)
