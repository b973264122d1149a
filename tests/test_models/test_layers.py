import copy

import pytest
import torch
from torch import nn

from mmlinattn.models import (
    ConvEmbedding,
    PositionTable,
    TransformerBlock,
    drop_path_rates,
)
from mmlinattn.models.layers.recomputation import recomputed


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


def test_drop_path_rates_grow_linearly():
    assert drop_path_rates(0.3, 4) == pytest.approx([0, 0.1, 0.2, 0.3])
    assert drop_path_rates(0.3, 1) == [0]


def test_recomputation_counts_a_batch_once():
    """Running statistics and gradients are those of a block that keeps everything."""
    block = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.ReLU()).train()
    other = copy.deepcopy(block)
    x = torch.randn(2, 3, 5, 5)
    for layers, run in ((block, block), (other, lambda x: recomputed(other, x))):
        (run(x) ** 2).sum().backward()
        assert layers[1].momentum == 0.1
    assert other[1].num_batches_tracked == 1
    for buffer, expected in zip(other.buffers(), block.buffers()):
        torch.testing.assert_close(buffer, expected)
    for param, expected in zip(other.parameters(), block.parameters()):
        torch.testing.assert_close(param.grad, expected.grad)


def test_wrong_options():
    with pytest.raises(ValueError, match='padding=1.*kernel_size=7'):
        ConvEmbedding(3, 16, 7, 4, padding=1)
    with pytest.raises(ValueError, match="norm_placement.*'middle'"):
        TransformerBlock(8, 2, dict(type='SoftmaxAttention'), norm_placement='middle')
    with pytest.raises(ValueError, match='position_convs.*0...2.*3'):
        TransformerBlock(8, 2, dict(type='SoftmaxAttention'), position_convs=3)
