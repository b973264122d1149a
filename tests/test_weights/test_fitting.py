"""Entries of a checkpoint that load into a model."""

import pytest
import torch
from torch import nn

from mmlinattn.models import SOFT
from mmlinattn.weights import convert_back, fit

pytestmark = pytest.mark.modern


@pytest.fixture
def model():
    backbone = nn.Sequential(nn.Conv2d(3, 8, 1), nn.BatchNorm2d(8))
    return nn.ModuleDict(dict(backbone=backbone, head=nn.Linear(8, 4)))


@pytest.fixture
def weights(model):
    return {key: value + 1 for key, value in model.state_dict().items()}


@pytest.fixture
def soft():
    """A model whose backbone has a position table, and takes official names."""
    arch = dict(embed_dims=[16] * 4, depths=[1] * 4, num_heads=[2] * 4)
    return nn.ModuleDict(dict(backbone=SOFT(arch)))


@pytest.mark.parametrize('place', ['bare', 'state_dict', 'module'])
def test_whole(model, weights, place):
    before = {key: value.clone() for key, value in model.state_dict().items()}
    found = (
        {f'module.{k}': x for k, x in weights.items()} if place == 'module' else weights
    )
    found = fit(model, found if place == 'bare' else dict(state_dict=found, meta={}))
    assert found.whole and found.describe() == ''
    assert found.state_dict.keys() == weights.keys()
    assert all(found.state_dict[key].equal(x) for key, x in weights.items())
    assert all(model.state_dict()[key].equal(x) for key, x in before.items())


def test_missing(model, weights):
    del weights['backbone.1.num_batches_tracked']  # torch counts from 0
    assert fit(model, weights).whole
    assert not fit(model, {'x': torch.zeros(1)}).state_dict
    del weights['backbone.0.weight']
    found = fit(model, weights)
    assert found.missing == ['backbone.0.weight'] and not found.whole
    assert found.state_dict.keys() >= weights.keys()
    assert found.describe() == '1 (backbone.0.weight) missing'


def test_other_shapes(model, weights):
    weights['head.weight'] = torch.zeros(7, 8)
    weights['head.bias'] = torch.zeros(7)
    found = fit(model, weights)
    assert found.mismatched == {
        'head.weight': '(7, 8) there, (4, 8) here',
        'head.bias': '(7,) there, (4,) here',
    }
    assert not found.missing and not found.whole
    assert found.state_dict.keys() == weights.keys() - found.mismatched.keys()
    assert 'head.bias (7,) there, (4,) here) of other shapes' in found.describe()


def test_values_that_are_no_numbers(model, weights):
    model.register_buffer('mask', torch.zeros(2))
    weights['mask'] = torch.tensor([0, -float('inf')])  # as masks have them
    assert fit(model, weights).whole
    weights['mask'][0] = float('nan')
    weights['head.bias'][1] = float('inf')
    found = fit(model, weights)
    assert found.broken == ['mask', 'head.bias'] and not found.whole
    assert 'NaN or infinite' in found.describe()


def test_left_over(model, weights):
    weights['auxiliary_head.weight'] = torch.zeros(2)  # a part that the model lacks
    weights['backbone.2.index'] = torch.zeros(2, dtype=torch.int64)
    found = fit(model, weights)
    assert found.whole
    weights['backbone.2.weight'] = torch.zeros(2)
    found = fit(model, weights)
    assert found.extra == ['backbone.2.weight'] and not found.whole


@pytest.mark.parametrize(
    'checkpoint', [{}, dict(state_dict={}), dict(epoch=3), dict(state_dict=3)]
)
def test_no_weights(model, checkpoint):
    with pytest.raises(ValueError, match='there are no weights'):
        fit(model, checkpoint)


def test_what_loads_is_renamed_and_resized(soft):
    weights = soft.state_dict()
    official, _ = convert_back(weights, 'soft')
    table = 'pos_embed1'
    official[table] = official[table].repeat_interleave(4, dim=1)
    found = fit(soft, {f'backbone.{key}': x for key, x in official.items()})
    assert found.whole and found.state_dict.keys() == weights.keys()
    soft.load_state_dict(found.state_dict)


def test_raw_official_weights_come_with_advice(soft):
    official, _ = convert_back(soft.state_dict(), 'soft')
    with pytest.raises(ValueError, match='(?s)pretrained=CHECKPOINT.*al soft SRC DST'):
        fit(soft, dict(state_dict=official))
