"""Focused linear attention beside that of the official code."""

import importlib.util
from pathlib import Path

import pytest
from torch import nn

from mmlinattn.models import FocusedLinearAttention

pytestmark = pytest.mark.modern

PATH = Path(__file__).parents[2] / 'data/official/flatten_fixture.py'
NAMES = {
    'dwc': 'local_conv',
    'get_v': 'lepe',
    'scale': 'focus_scale',
    'positional_encoding': 'pos_embed.table',
}


@pytest.fixture(scope='module')
def official():
    spec = importlib.util.spec_from_file_location('flatten_fixture', PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build(official, family):
    """Our module with the official weights, all of them used."""
    module = FocusedLinearAttention(
        official.DIMS, official.HEADS, map_side=official.SIDE, lepe=family == 'cswin'
    )
    state_dict = {}
    for key, value in official.weights().items():
        first, dot, rest = key.partition('.')
        state_dict[NAMES.get(first, first) + dot + rest] = value
    state_dict['focus_scale'] = state_dict['focus_scale'].flatten()
    missing, unexpected = module.load_state_dict(state_dict, strict=False)
    assert not missing
    assert unexpected == ['lepe.weight', 'lepe.bias'] * (family == 'swin')
    if family == 'cswin':
        module.proj = nn.Identity()
    return module.eval()


@pytest.mark.parametrize('family', ['swin', 'cswin'])
def test_outputs_are_the_official_ones(family, official):
    module = build(official, family)
    hw_shape = (official.SIDE, official.SIDE)
    out, expected = module(official.tokens(), hw_shape), official.outputs()[family]
    assert (out - expected).norm() < 1e-5 * expected.norm()
