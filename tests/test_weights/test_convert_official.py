"""The command convert_official."""

from fractions import Fraction

import antioversmoothing_fixture as antioversmoothing
import pytest
import soft_fixture as soft
import torch

from mmlinattn import weights

pytestmark = pytest.mark.openmmlab


@pytest.mark.parametrize(
    'wrap',
    [
        lambda weights: weights,
        lambda weights: dict(model=weights),
        lambda weights: dict(state_dict=weights, epoch=3, optimizer=dict(lr=0.1)),
        lambda weights: {f'module.{key}': value for key, value in weights.items()},
    ],
)
def test_wrappings(convert, capsys, wrap):
    official = soft.weights()
    converted = convert(wrap(official))
    expected = weights.convert(official, 'soft')
    assert converted['state_dict'].keys() == expected.keys()
    assert all(converted['state_dict'][key].equal(x) for key, x in expected.items())
    layout = converted['meta']['layout']
    assert layout['depths'] == (1, 1, 2, 1) and layout['head'] == 'head'
    out = capsys.readouterr().out
    assert f' {len(official)} official keys to {len(expected)} of ours' in out


def test_buffers(convert):
    """The model computes them itself."""
    converted = convert(antioversmoothing.weights('swin_attnscale'), family='auto')
    assert converted['meta']['family'] == 'swin'
    assert not [k for k in converted['state_dict'] if 'mask' in k or 'index' in k]


def test_moving_average(convert, capsys):
    official = soft.weights()
    average = {key: value + 1 for key, value in official.items()}
    checkpoint = dict(state_dict=official, state_dict_ema=average)
    converted = convert(checkpoint)
    assert '--ema takes it' in capsys.readouterr().out
    assert converted['state_dict']['head.fc.bias'].equal(official['head.bias'])
    converted = convert(checkpoint, '--ema', '--overwrite')
    assert converted['state_dict']['head.fc.bias'].equal(official['head.bias'] + 1)
    # as released files of CSWin
    assert convert(dict(state_dict_ema=average), '--overwrite')


@pytest.mark.parametrize(
    'checkpoint, options, words',
    [
        ({}, (), 'no state dict bare'),
        (dict(model=[torch.zeros(1)]), (), 'no state dict bare'),
        (dict(model={'x': torch.zeros(1)}), ('--ema',), 'under state_dict_ema'),
        ({'x': torch.zeros(1)}, (), "official 'soft' model"),
        ({'x': Fraction(1, 3)}, (), 'a fractions.Fraction'),
    ],
)
def test_no_weights_of_the_family(tool, tmp_path, error_of, checkpoint, options, words):
    src, dst = tmp_path / 'official.pth', tmp_path / 'refused.pth'
    torch.save(checkpoint, src)
    line = error_of(tool.main, ['soft', str(src), str(dst), *options])
    assert words in line and 'official.pth' in line and not dst.exists()


def test_reverse_is_exact(convert, tool, tmp_path):
    official = soft.weights()
    convert(official)
    back = tmp_path / 'back.pth'
    tool.main(['auto', str(convert.dst), str(back), '--reverse'])
    state_dict = torch.load(back, weights_only=True)['state_dict_ema']
    assert state_dict.keys() == official.keys()
    assert all(state_dict[key].equal(value) for key, value in official.items())
