"""Initial values where MMEngine is loaded: our modules in its modules, its in ours.
``tests/test_torch_alone.py`` compares them with those without it."""

import copy
import pickle

import pytest
import torch
from mmengine.model import BaseModule as TheirModule
from mmengine.model import initialize as their_initialize
from torch import nn

from mmlinattn.models import SimpleFeaturePyramid
from mmlinattn.models.layers.initialization import BaseModule, ModuleList, initialize

ONES = dict(type='Constant', layer='Linear', val=1.0, bias=1.0)
TWOS = dict(type='Constant', layer='Linear', val=2.0, bias=2.0)


def module(base, init_cfg, *children):
    """A module of ours or of MMEngine's with a linear layer and children in a list."""
    made = base(init_cfg)
    made.layer = nn.Linear(2, 2)
    made.children_of = ModuleList(children)
    return made


@pytest.mark.parametrize('outer', [BaseModule, TheirModule])
@pytest.mark.parametrize('inner', [BaseModule, TheirModule])
def test_inner_modules_decide_themselves(outer, inner):
    child, plain = module(inner, [TWOS]), module(inner, None)
    model = module(outer, ONES, child, plain)
    model.init_weights()
    assert model.layer.weight.unique().tolist() == [1]
    assert child.layer.weight.unique().tolist() == [2]
    assert plain.layer.weight.unique().tolist() == [1]
    parts = (model, model.children_of, child, plain)
    assert all(part.is_init for part in parts)
    assert not any(hasattr(part, '_params_init_info') for part in model.modules())
    nn.init.zeros_(child.layer.weight)
    model.init_weights()  # once is all
    assert not child.layer.weight.any()


@pytest.mark.parametrize(
    'cfg',
    [
        dict(type='TruncNormal', layer='Linear', std=0.02, bias=0.5),
        dict(type='TruncNormal', layer=['Conv2d', 'Linear'], mean=1.0, a=0.0, b=2.0),
        dict(type='Constant', layer='_BatchNorm', val=0.5),
        dict(type='Xavier', layer='Conv2d', distribution='uniform', bias=1.0),
        dict(type='Xavier', layer='Linear', gain=2.0),
        dict(type='Constant', val=3.0),
    ],
)
def test_kinds_are_those_of_mmengine(cfg):
    """The same random numbers, in the same layers."""
    theirs = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 5))
    ours = copy.deepcopy(theirs)
    torch.manual_seed(0)
    their_initialize(theirs, dict(cfg))
    torch.manual_seed(0)
    initialize(ours, **cfg)
    for key, x in theirs.state_dict().items():
        assert x.equal(ours.state_dict()[key]), key


def test_other_kinds_are_those_of_mmengine():
    neck = SimpleFeaturePyramid(
        8, 4, init_cfg=dict(type='Kaiming', layer='Conv2d', override=dict(name='extra'))
    )
    neck.init_weights()
    assert neck.is_init


def test_modules_are_copied_and_pickled():
    model = module(BaseModule, ONES, module(BaseModule, None))
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):  # noqa: S301
        assert other.init_cfg == ONES and not other.is_init
        assert other.state_dict().keys() == model.state_dict().keys()
    assert repr(model).endswith(f'init_cfg={ONES}')
    assert isinstance(model.children_of[:1], ModuleList)
