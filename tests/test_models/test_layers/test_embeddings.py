import copy
import math

import pytest
import torch
from torch import nn

from mmlinattn.models import ConvEmbedding
from mmlinattn.models.layers import PositionTable

pytestmark = pytest.mark.modern

SIZES = ((32, 32), (33, 57))


@pytest.mark.parametrize('kernel_size, stride, padding', ((7, 4, 2), (4, 2, 1)))
@pytest.mark.parametrize('height, width', SIZES)
def test_padding_of_an_overlapping_embedding(
    height, width, kernel_size, stride, padding
):
    """It is the official one if sides are whole strides, otherwise enough for
    ceil(side / stride)."""
    embedding = ConvEmbedding(
        3, 16, kernel_size, stride, dict(type='LN'), None, padding
    )
    conv, norm, _ = embedding.layer
    x = torch.randn(2, 3, height, width)
    padded = nn.functional.pad(x, (0, -width % stride, 0, -height % stride))
    expected = nn.functional.conv2d(padded, conv.weight, conv.bias, stride, padding)
    expected = nn.functional.layer_norm(expected.permute(0, 2, 3, 1), (16,))
    assert norm.eps == 1e-5
    torch.testing.assert_close(embedding(x).permute(0, 2, 3, 1), expected)
    sides = math.ceil(height / stride), math.ceil(width / stride)
    assert embedding(x).shape == (2, 16, *sides)


@pytest.mark.parametrize('padding', (0, 1, 4))
def test_padding_that_would_change_the_stride(padding):
    with pytest.raises(ValueError, match=f'padding={padding}.*kernel_size=7'):
        ConvEmbedding(3, 16, 7, 4, padding=padding)


@pytest.mark.parametrize('num_extra', (0, 2))
def test_position_table(num_extra):
    table = PositionTable(8, (5, 7), num_extra)
    stored = table.table
    assert stored.shape == (1, num_extra + 35, 8) and stored.all()
    assert table((5, 7)) is stored
    resized = table((9, 4))
    assert resized[:, :num_extra].equal(stored[:, :num_extra])
    maps = stored[:, num_extra:].view(1, 5, 7, 8).permute(0, 3, 1, 2)
    expected = nn.functional.interpolate(
        maps, (9, 4), mode='bilinear', align_corners=False
    )
    torch.testing.assert_close(
        resized[:, num_extra:].view(1, 9, 4, 8).permute(0, 3, 1, 2), expected
    )


@pytest.mark.parametrize('num_extra', (0, 1))
def test_position_table_of_another_size_is_resized(num_extra):
    large = PositionTable(8, (6, 6), num_extra)
    small = copy.deepcopy(PositionTable(8, (3, 4), num_extra))
    state_dict = large.state_dict()
    small.load_state_dict(state_dict)
    assert small.table.equal(large((3, 4)))
    assert state_dict['table'].equal(large.table)  # left as it was


def test_position_table_that_is_no_square_is_refused():
    with pytest.raises(RuntimeError, match='size mismatch'):
        PositionTable(8, (3, 4)).load_state_dict(dict(table=torch.ones(1, 10, 8)))
