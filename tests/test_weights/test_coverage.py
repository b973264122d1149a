"""Whether a checkpoint is one of a model."""

import pytest
import torch
from torch import nn

from mmlinattn.models import SOFT
from mmlinattn.weights import convert_back, cover

pytestmark = pytest.mark.modern


class Model(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, width, 1), nn.BatchNorm2d(width))
        self.head = nn.Linear(width, 4)


@pytest.fixture
def model():
    return Model()


@pytest.fixture
def weights(model):
    return {key: value.clone() for key, value in model.state_dict().items()}


@pytest.mark.parametrize('place', ['bare', 'state_dict', 'module'])
def test_whole(model, weights, place):
    if place == 'module':
        weights = {f'module.{key}': value for key, value in weights.items()}
    checkpoint = weights if place == 'bare' else dict(state_dict=weights, meta={})
    found = cover(model, checkpoint)
    assert found.whole and found.taken == found.total == len(weights) - 1
    assert found.describe() == ''


def test_key_that_is_no_name(model, weights):
    with pytest.raises(ValueError, match='keys of a state dict are text, .* has 3'):
        cover(model, dict(state_dict={**weights, 3: torch.zeros(1)}))


def test_counters_may_be_missing(model, weights):
    del weights['backbone.1.num_batches_tracked']
    assert cover(model, weights).whole


def test_missing(model, weights):
    del weights['backbone.0.weight']
    found = cover(model, weights)
    assert found.missing == ['backbone.0.weight'] and not found.whole
    assert found.taken == found.total - 1
    assert found.describe() == '1 (backbone.0.weight) missing'


def test_other_shapes(model, weights):
    weights['head.weight'] = torch.zeros(7, 8)
    weights['head.bias'] = torch.zeros(7)
    found = cover(model, weights)
    assert found.misfits == [
        'head.weight (7, 8) there, (4, 8) here',
        'head.bias (7) there, (4) here',
    ]
    assert not found.missing and found.taken == found.total - 2 and not found.whole


@pytest.mark.parametrize('value', [float('nan'), float('inf'), -float('inf')])
def test_values_that_are_no_numbers(model, weights, value):
    weights['head.bias'][1] = value
    found = cover(model, weights)
    assert found.broken == ['head.bias'] and not found.whole
    assert 'NaN or infinite' in found.describe()


def test_infinite_buffer_is_none_of_our_business(model, weights):
    model.register_buffer('mask', torch.zeros(2))
    weights['mask'] = torch.tensor([0, -float('inf')])
    assert cover(model, weights).whole
    weights['mask'][0] = float('nan')
    assert cover(model, weights).broken == ['mask']


def test_parts_that_the_model_lacks_do_no_harm(model, weights):
    weights['auxiliary_head.weight'] = torch.zeros(2)
    found = cover(model, weights)
    assert found.whole and found.unused == ['auxiliary_head.weight']


def test_deeper_model(model, weights):
    weights['backbone.2.weight'] = torch.zeros(2)
    found = cover(model, weights)
    assert found.extra == ['backbone.2.weight'] and not found.whole
    weights['backbone.2.weight'] = torch.zeros(2, dtype=torch.int64)  # an index
    assert cover(model, weights).whole


@pytest.mark.parametrize(
    'checkpoint', [{}, dict(state_dict={}), dict(epoch=3), dict(state_dict=3)]
)
def test_no_weights(model, checkpoint):
    with pytest.raises(ValueError, match='there are no weights'):
        cover(model, checkpoint)


def test_raw_official_weights_come_with_advice():
    arch = dict(embed_dims=[16] * 4, depths=[1] * 4, num_heads=[2] * 4)
    model = nn.ModuleDict(dict(backbone=SOFT(arch, out_indices=(3,))))
    official, _ = convert_back(model.state_dict(), 'soft')
    found = cover(model, dict(state_dict=official))
    assert not found.whole and found.taken == 0
    assert 'pretrained=CHECKPOINT' in found.advice
    assert 'convert_official soft SRC DST' in found.advice


def test_tables_are_resized_and_no_misfits():
    arch = dict(embed_dims=[16], depths=[1], num_heads=[2])
    options = dict(sampling_ratios=[8], kernel_sizes=[3])
    model = nn.ModuleDict(dict(backbone=SOFT(arch, **options)))
    weights = model.state_dict()
    (table,) = [key for key in weights if key.endswith('table')]
    assert weights[table].dim() >= 2
    larger = dict(weights, **{table: weights[table].repeat_interleave(4, dim=1)})
    assert cover(model, larger).whole
