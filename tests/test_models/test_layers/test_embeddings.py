import copy
import math

import pytest
import torch
from torch import nn
from torch.nn.utils import vector_to_parameters

from mmlinattn.models import ConvEmbedding, ConvStem
from mmlinattn.models.layers import PositionTable

pytestmark = pytest.mark.modern

SIZES = ((32, 32), (33, 57), (66, 129))


@pytest.mark.parametrize('height, width', SIZES)
def test_stem_is_three_overlapping_convolutions(height, width):
    stem = ConvStem(3, 16)
    convs = [m for m in stem.modules() if isinstance(m, nn.Conv2d)]
    assert [conv.stride for conv in convs] == [(2, 2), (1, 1), (2, 2)]
    assert [conv.out_channels for conv in convs] == [32, 32, 16]
    assert all(conv.kernel_size == (3, 3) for conv in convs)
    assert all(conv.bias is not None for conv in convs)
    out = stem(torch.randn(2, 3, height, width))
    assert out.shape == (2, 16, math.ceil(height / 4), math.ceil(width / 4))


@pytest.mark.parametrize('height, width', SIZES)
@pytest.mark.parametrize('kernel_size, stride', ((3, 2), (7, 4), (2, 2), (4, 4)))
def test_embedding_rounds_up(kernel_size, stride, height, width):
    embedding = ConvEmbedding(3, 16, kernel_size=kernel_size, stride=stride)
    out = embedding(torch.randn(2, 3, height, width))
    sides = math.ceil(height / stride), math.ceil(width / stride)
    assert out.shape == (2, 16, *sides)


@pytest.mark.parametrize('kernel_size, stride, padding', ((7, 4, 2), (4, 2, 1)))
@pytest.mark.parametrize('height, width', SIZES)
def test_padding_of_an_overlapping_embedding(
    height, width, kernel_size, stride, padding
):
    """That of the official code where sides are whole strides, and enough for
    ceil(side / stride) elsewhere."""
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


def test_patches_are_disjoint():
    embedding = ConvEmbedding(1, 4, 4, 4, norm_cfg=dict(type='BN')).eval()
    x = torch.randn(1, 1, 9, 10)
    changed = x.clone()
    changed[..., 4:8, 8:] += 1  # the patch at (1, 2)
    difference = (embedding(changed) != embedding(x)).any(1)[0]
    assert difference.nonzero().tolist() == [[1, 2]]


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


def step(table):
    table.table.sum().backward()
    torch.optim.SGD(table.parameters(), lr=0.1).step()


@pytest.mark.parametrize(
    'change',
    (
        step,
        lambda table: table.load_state_dict(dict(table=torch.ones(1, 36, 8))),
        # assign= and .data leave no trace on the parameter
        lambda table: [
            table.load_state_dict(dict(table=torch.full((1, 36, 8), x)), assign=True)
            for x in (1.0, 2.0)
        ],
        lambda table: table.table.data.fill_(1),
        lambda table: vector_to_parameters(torch.ones(288), table.parameters()),
        lambda table: table.double(),
        lambda table: table.half().float(),
    ),
    ids=('step', 'load', 'assign', 'data', 'vector', 'double', 'rounded'),
)
@torch.no_grad()
def test_position_table_follows_its_parameter(change):
    table = PositionTable(8, (6, 6)).eval()
    before = table((3, 4))
    with torch.enable_grad():
        change(table)
    after = table((3, 4))
    assert after.dtype == table.table.dtype
    assert after.equal(table.resize(table.table, (6, 6), (3, 4)))
    assert not after.equal(before)


def test_position_table_after_inference_mode():
    table = PositionTable(8, (6, 6)).eval()
    with torch.inference_mode():
        table((3, 4))
    with torch.no_grad():
        assert not table((3, 4)).is_inference()
    table((3, 4)).sum().backward()
    assert table.table.grad.any()


def test_position_table_that_is_no_square_is_refused():
    with pytest.raises(RuntimeError, match='size mismatch'):
        PositionTable(8, (3, 4)).load_state_dict(dict(table=torch.ones(1, 10, 8)))
