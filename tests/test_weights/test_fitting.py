"""Entries of a checkpoint that load into a model."""

import antioversmoothing_fixture as antioversmoothing
import pytest
import torch
from mmengine.runner import load_checkpoint
from torch import nn

from mmlinattn.models import SOFT
from mmlinattn.weights import convert_back, fit, read_file

pytestmark = pytest.mark.openmmlab


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
    entries = weights
    if place == 'module':
        entries = {f'module.{key}': x for key, x in weights.items()}
    checkpoint = entries if place == 'bare' else dict(state_dict=entries, meta={})
    fitted = fit(model, checkpoint)
    assert fitted.whole and fitted.describe() == ''
    assert fitted.state_dict.keys() == weights.keys()
    assert all(fitted.state_dict[key].equal(x) for key, x in weights.items())
    assert all(model.state_dict()[key].equal(x) for key, x in before.items())


NAN, INF = float('nan'), float('inf')


@pytest.mark.parametrize(
    'changes, described',
    [
        ({'backbone.1.num_batches_tracked': None}, ''),  # torch counts from 0
        ({'backbone.0.weight': None}, '1 (backbone.0.weight) missing'),
        (
            {'head.weight': torch.zeros(7, 8), 'head.bias': torch.zeros(7)},
            '2 (head.weight (7, 8) there, (4, 8) here, head.bias (7,) there, (4,) here)'
            ' of other shapes',
        ),
        ({'mask': torch.tensor([0, -INF])}, ''),  # as masks have them
        ({'mask': torch.tensor([0, NAN])}, '1 (mask) with NaN or infinite values'),
        ({'head.bias': torch.full((4,), INF)}, '1 (head.bias) with NaN or infinite'),
        # a part that the model lacks, and an index
        ({'auxiliary_head.weight': torch.zeros(2)}, ''),
        ({'backbone.2.index': torch.zeros(2, dtype=torch.int64)}, ''),
        ({'backbone.2.weight': torch.zeros(2)}, '1 (backbone.2.weight) that the model'),
    ],
)
def test_entries_that_do_not_fit(model, weights, changes, described):
    model.register_buffer('mask', torch.zeros(2))
    weights = {'mask': torch.zeros(2), **weights, **changes}
    fitted = fit(model, {key: x for key, x in weights.items() if x is not None})
    assert fitted.describe().startswith(described)
    assert fitted.whole == (not fitted.describe()) == (not described)
    there = {key for key, x in weights.items() if x is not None}
    loaded = model.state_dict().keys() & there - fitted.mismatched.keys()
    assert loaded == fitted.state_dict.keys() & model.state_dict().keys()
    assert not fit(model, {'x': torch.zeros(1)}).state_dict


@pytest.mark.parametrize(
    'checkpoint', [{}, dict(state_dict={}), dict(epoch=3), dict(state_dict=3)]
)
def test_no_weights(model, checkpoint):
    with pytest.raises(ValueError, match='there are no weights'):
        fit(model, checkpoint)


class Renamed(nn.Linear):
    """A layer whose bias had another name in version 1, and that has its own table."""

    _version = 2

    def __init__(self):
        super().__init__(2, 2)
        self.register_buffer('table', torch.ones(1))
        self.register_buffer('frozen', torch.ones(1))
        self._register_load_state_dict_pre_hook(self.drop_table)
        self.register_load_state_dict_post_hook(self.need_no_frozen)

    def drop_table(self, state_dict, prefix, *args):
        state_dict.pop(f'{prefix}table', None)

    def need_no_frozen(self, module, keys):
        for names in keys:
            names[:] = [x for x in names if not x.endswith(('.frozen', '.melted'))]

    def _load_from_state_dict(self, state_dict, prefix, metadata, *args):
        if metadata.get('version', 1) < 2:
            state_dict[f'{prefix}bias'] = state_dict.pop(f'{prefix}offset')
        super()._load_from_state_dict(state_dict, prefix, metadata, *args)


@pytest.mark.parametrize('version', [1, 2])
def test_modules_load_in_their_own_ways(tmp_path, version):
    """As MMEngine loads the file: it takes their versions into account."""
    model = nn.ModuleDict(dict(neck=Renamed()))
    weights = model.state_dict()
    if version == 1:
        weights['neck.offset'] = weights.pop('neck.bias') + 1
        weights._metadata['neck'] = dict(version=1)
    weights['neck.table'] = weights['neck.melted'] = torch.zeros(1)
    del weights['neck.frozen']
    path = tmp_path / 'x.pth'
    torch.save(dict(state_dict=weights), path)
    fitted = fit(model, read_file(path))
    assert fitted.whole and list(fitted.state_dict) == ['neck.weight', 'neck.bias']
    load_checkpoint(model, str(path), strict=False)
    assert model.neck.bias.equal(fitted.state_dict['neck.bias'])
    assert model.neck.table.equal(torch.ones(1))


def test_names_of_other_models_stay(model, weights):
    """Even if they are those of DeiT."""
    deit = antioversmoothing.weights('deit_timm')
    model = nn.Module()
    model.head = nn.Module()
    model.head.fc = nn.Linear(2, 2)
    fitted = fit(model, dict(state_dict=deit))
    assert fitted.missing == ['head.fc.weight', 'head.fc.bias']
    assert sorted(fitted.extra) == ['head.bias', 'head.weight']


def test_what_loads_is_renamed_and_resized(soft):
    weights = soft.state_dict()
    official, _ = convert_back(weights, 'soft')
    table = 'pos_embed1'
    official[table] = official[table].repeat_interleave(4, dim=1)
    fitted = fit(soft, {f'backbone.{key}': x for key, x in official.items()})
    assert fitted.whole and fitted.state_dict.keys() == weights.keys()
    soft.load_state_dict(fitted.state_dict)


def test_raw_official_weights_come_with_advice(soft):
    official, _ = convert_back(soft.state_dict(), 'soft')
    with pytest.raises(ValueError, match='(?s)pretrained=CHECKPOINT.*al soft SRC DST'):
        fit(soft, dict(state_dict=official))
