"""Legend: (H, W) map, (s, t) sides of a block, d channels."""

import math

import pytest
import torch

from mmlinattn.functional import blockify, crop_map, pad_map, square_side, unblockify

pytestmark = pytest.mark.modern

# map, block
SHAPES = (
    ((6, 9), 3),
    ((7, 5), 3),
    ((2, 2), 5),
    ((1, 1), 1),
    ((1, 8), 4),
    ((7, 5), (7, 2)),
    ((7, 5), (2, 5)),
    ((4, 6), (3, 4)),
)
IDS = [f'{hw}-{block}'.replace(' ', '') for hw, block in SHAPES]
BLOCKS = pytest.mark.parametrize('hw_shape, side', SHAPES, ids=IDS)
CENTERED = pytest.mark.parametrize('centered', (False, True))


def token_map(hw_shape):
    return torch.randn(2, 3, math.prod(hw_shape), 4)


def paper_blocks(x, hw_shape, side, centered):
    """Blocks (2, 3, n, s * t, 4) of the padded map."""
    sides = (side, side) if isinstance(side, int) else side
    missing = [-length % s for length, s in zip(hw_shape, sides)]
    top, left = (n // 2 if centered else 0 for n in missing)
    padding = (0, 0, left, missing[1] - left, top, missing[0] - top)
    maps = torch.nn.functional.pad(x.unflatten(2, hw_shape), padding)
    blocks = maps.unfold(2, sides[0], sides[0]).unfold(3, sides[1], sides[1])
    return blocks.flatten(2, 3).permute(0, 1, 2, 4, 5, 3).flatten(3, 4)


@CENTERED
@BLOCKS
def test_blocks_in_raster_order_and_back(hw_shape, side, centered):
    x = token_map(hw_shape)
    blocks = blockify(x, hw_shape, side, centered)
    assert blocks.equal(paper_blocks(x, hw_shape, side, centered))
    assert unblockify(blocks, hw_shape, side, centered).equal(x)
    padded, padded_shape = pad_map(x, hw_shape, side, centered)
    assert padded.size(-2) == math.prod(padded_shape)
    assert crop_map(padded, padded_shape, hw_shape, centered).equal(x)


@pytest.mark.parametrize('size', (0, -4, 2, 48, 4.0, '49', None))
def test_no_square(size):
    with pytest.raises(ValueError, match=f'tokens must be a square.*got {size!r}'):
        square_side(size, 'tokens')
