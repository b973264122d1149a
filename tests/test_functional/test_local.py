"""Legend: B batch, h heads, (H, W) map, (s, t) sides of a block, d head dim."""

import math

import pytest
import torch

from mmlinattn.functional import blockify, local_attention, unblockify

# map, block
SHAPES = (
    ((6, 6), (3, 3)),
    ((7, 5), (3, 3)),
    ((2, 3), (5, 5)),
    ((7, 5), (2, 5)),
    ((1, 1), (1, 1)),
)


def tokens(hw_shape, num=3, **options):
    return [
        torch.randn(2, 3, math.prod(hw_shape), 4, dtype=torch.float64, **options)
        for _ in range(num)
    ]


def paper_attention(q, k, v, hw_shape, block_shape, mask_padding, centered, omega):
    """Block after block, head after head, with whole attention matrices."""
    (height, width), (s, t) = hw_shape, block_shape
    top = -height % s // 2 if centered else 0
    left = -width % t // 2 if centered else 0
    ys = torch.arange(height).repeat_interleave(width) + top
    xs = torch.arange(width).repeat(height) + left
    block_of = ys // s * (width + t) + xs // t
    out = torch.empty_like(v)
    for block in block_of.unique():
        inside = block_of == block
        num_keys = int(inside.sum()) if mask_padding else s * t
        for b, h in ((b, h) for b in range(len(q)) for h in range(q.size(1))):
            queries, keys, values = (x[b, h, inside] for x in (q, k, v))
            padding = keys.new_zeros(num_keys - len(keys), keys.size(1))
            keys, values = (torch.cat((x, padding)) for x in (keys, values))
            attn = (queries @ keys.mT / q.size(-1) ** 0.5).softmax(-1)
            if omega is not None:
                low = torch.full_like(attn, 1 / num_keys)
                attn = low + (1 + omega[h]) * (attn - low)
            out[b, h, inside] = attn @ values
    return out


@pytest.mark.parametrize('with_omega', (False, True))
@pytest.mark.parametrize('centered', (False, True))
@pytest.mark.parametrize('mask_padding', (False, True))
@pytest.mark.parametrize('hw_shape, block_shape', SHAPES, ids=str)
def test_matches_the_paper_block_by_block(
    hw_shape, block_shape, mask_padding, centered, with_omega
):
    omega = torch.tensor([-0.5, 0.0, 2.0]).double() if with_omega else None
    inputs = tokens(hw_shape)
    result = local_attention(
        *inputs,
        hw_shape,
        block_shape,
        mask_padding=mask_padding,
        omega=omega,
        centered=centered,
    )
    expected = paper_attention(
        *inputs, hw_shape, block_shape, mask_padding, centered, omega
    )
    torch.testing.assert_close(result, expected)


@pytest.mark.parametrize('centered', (False, True))
def test_a_side_of_none_is_the_maps(centered):
    q, k, v = tokens((7, 5))
    for block, same in (((None, 2), (7, 2)), ((3, None), (3, 5))):
        out = local_attention(q, k, v, (7, 5), block, centered=centered)
        expected = local_attention(q, k, v, (7, 5), same, centered=centered)
        assert out.equal(expected)
        blocks = [blockify(v, (7, 5), side, centered) for side in (block, same)]
        assert blocks[0].equal(blocks[1])
        assert unblockify(blocks[0], (7, 5), block, centered).equal(v)
