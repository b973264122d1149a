"""Legend: B batch, h heads, (H, W) map, (s, t) sides of a block, d head dim."""

import math

import pytest
import torch
from torch.autograd import gradcheck
from torch.nn.functional import scaled_dot_product_attention

from mmlinattn.functional import block_attention, local_attention

pytestmark = pytest.mark.modern

# map, block
SHAPES = (
    ((6, 6), (3, 3)),
    ((7, 5), (3, 3)),
    ((2, 3), (5, 5)),
    ((7, 5), (7, 2)),
    ((7, 5), (2, 5)),
    ((1, 1), (1, 1)),
)
IDS = [f'{hw}-{block}'.replace(' ', '') for hw, block in SHAPES]


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
@pytest.mark.parametrize('hw_shape, block_shape', SHAPES, ids=IDS)
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


def test_block_attention_is_local_attention_in_squares():
    q, k, v = tokens((7, 5))
    omega = torch.tensor([-0.5, 0.0, 2.0]).double()
    for options in (dict(), dict(mask_padding=True, omega=omega)):
        result = block_attention(q, k, v, (7, 5), 9, **options)
        assert result.equal(local_attention(q, k, v, (7, 5), (3, 3), **options))


def test_one_block_is_plain_softmax_attention():
    q, k, v = tokens((4, 4))
    torch.testing.assert_close(
        block_attention(q, k, v, (4, 4), 16), scaled_dot_product_attention(q, k, v)
    )


@pytest.mark.parametrize('mask_padding', (False, True))
def test_blocks_are_local(mask_padding):
    q, k, v = tokens((7, 5))
    changed = [x.clone() for x in (q, k, v)]
    for x in changed:
        x.view(2, 3, 7, 5, 4)[:, :, 4, 3] += 1  # in the block at (1, 1)
    difference = block_attention(q, k, v, (7, 5), 9, mask_padding) != block_attention(
        *changed, (7, 5), 9, mask_padding
    )
    difference = difference.any(-1).view(2, 3, 7, 5)
    assert difference[..., 3:6, 3:].all()
    difference[..., 3:6, 3:] = False
    assert not difference.any()


@pytest.mark.parametrize('mask_padding', (False, True))
def test_gradcheck(mask_padding):
    inputs = tokens((3, 2), requires_grad=True)
    omega = torch.randn(3, dtype=torch.float64, requires_grad=True)

    def attend(q, k, v, omega):
        return block_attention(q, k, v, (3, 2), 4, mask_padding, omega)

    assert gradcheck(attend, (*inputs, omega))


@pytest.mark.parametrize('block_size', (0, 48, -49, 49.0))
def test_blocks_that_are_no_squares(block_size):
    with pytest.raises(ValueError, match=f'block_size.*square.*{block_size}'):
        block_attention(*tokens((7, 7)), (7, 7), block_size)
