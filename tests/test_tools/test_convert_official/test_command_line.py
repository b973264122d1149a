import argparse
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.modern

TOOL = Path(__file__).parents[3] / 'tools/model_converters/convert_official.py'


@pytest.fixture(scope='module')
def official(soft):
    return soft.weights()


@pytest.mark.parametrize(
    'wrap',
    [
        lambda weights: weights,
        lambda weights: dict(model=weights),
        lambda weights: dict(state_dict=weights, epoch=3, optimizer=dict(lr=0.1)),
        lambda weights: {f'module.{key}': value for key, value in weights.items()},
    ],
)
def test_wrappings(tool, official, convert, capsys, wrap):
    converted = convert(wrap(official))
    expected = tool.convert(official, 'soft')
    assert converted['state_dict'].keys() == expected.keys()
    for key, value in expected.items():
        assert torch.equal(converted['state_dict'][key], value)
    assert converted['meta'] == dict(
        family='soft',
        source='official.pth',
        ema=False,
        arch=dict(embed_dims=[8, 16, 24, 32], depths=[1, 1, 2, 1]),
        scales=[],
    )
    out = capsys.readouterr().out
    assert f'all {len(official)} official keys to {len(expected)} of ours' in out
    assert 'a head of 5 classes' in out


def test_moving_average(official, convert, capsys):
    average = {key: value + 1 for key, value in official.items()}
    checkpoint = dict(state_dict=official, state_dict_ema=average)
    converted = convert(checkpoint)
    assert '--ema' in capsys.readouterr().out
    assert torch.equal(converted['state_dict']['head.fc.bias'], official['head.bias'])
    converted = convert(checkpoint, '--ema', '--overwrite')
    assert torch.equal(
        converted['state_dict']['head.fc.bias'], official['head.bias'] + 1
    )
    assert converted['meta']['ema']


def test_without_head(official, convert, capsys):
    headless = {k: v for k, v in official.items() if not k.startswith('head.')}
    converted = convert(headless)['state_dict']
    assert all(key.startswith('backbone.') for key in converted)
    assert 'no head' in capsys.readouterr().out


def test_leftover_key(official, refused):
    line = refused({**official, 'block2.0.att.extra.weight': torch.zeros(1)})
    assert 'missing 0, left over 1 (block2.0.att.extra.weight)' in line


def test_other_family(refused):
    line = refused(
        {
            'cls_token': torch.zeros(1, 1, 8),
            'pos_embed': torch.zeros(1, 5, 8),
            'blocks.0.attn.qkv.weight': torch.zeros(24, 8),
        }
    )
    assert "official 'soft' model" in line
    assert 'pos_embed1' in line and 'blocks.0.attn.qkv.weight' in line


@pytest.mark.parametrize(
    'checkpoint', [{}, dict(epoch=1), dict(model={}), dict(model=[torch.zeros(1)]), [1]]
)
def test_no_state_dict(refused, checkpoint):
    line = refused(checkpoint)
    assert 'state dict' in line or 'must hold a dict' in line


def test_no_moving_average(official, refused):
    assert 'state_dict_ema' in refused(official, '--ema')


def test_training_checkpoint_needs_trust(official, convert, refused):
    """Python objects are unpickled only when asked for."""
    checkpoint = dict(model=official, args=argparse.Namespace(lr=0.1))
    line = refused(checkpoint)
    assert '--trust' in line and 'Namespace' in line
    assert 'head.fc.weight' in convert(checkpoint, '--trust')['state_dict']


@pytest.mark.parametrize('content', [None, b'', b'no checkpoint'])
def test_no_checkpoint(tool, tmp_path, capsys, content):
    src = tmp_path / 'src.pth'
    if content is not None:
        src.write_bytes(content)
    with pytest.raises(SystemExit):
        tool.main(['soft', str(src), str(tmp_path / 'dst.pth')])
    (line,) = capsys.readouterr().err.splitlines()
    assert str(src) in line
    assert not (tmp_path / 'dst.pth').exists()


def test_existing_file_is_kept(official, convert, capsys):
    convert(official)
    before = convert.dst.read_bytes()
    with pytest.raises(SystemExit):
        convert({'other': torch.zeros(1)})
    assert '--overwrite' in capsys.readouterr().err
    # neither does a failing conversion take it away
    with pytest.raises(SystemExit):
        convert({'other': torch.zeros(1)}, '--overwrite')
    assert convert.dst.read_bytes() == before
    assert list(convert.dst.parent.iterdir()) == [convert.dst]


def test_command_line(tmp_path, official):

    def run(*args):
        return subprocess.run(
            [sys.executable, str(TOOL), *map(str, args)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )

    shown = run('--help')
    assert shown.returncode == 0
    for word in (
        'soft',
        'deit',
        'cait',
        'swin',
        'cswin',
        'SRC',
        'DST',
        'example:',
        'backbone.',
        '--overwrite',
        '--attention',
        '--arch',
    ):
        assert word in shown.stdout
    failed = run('resnet', 'a.pth', 'b.pth')
    assert failed.returncode == 2
    assert len(failed.stderr.splitlines()) == 1 and "'resnet'" in failed.stderr
    torch.save(official, tmp_path / 'a.pth')
    done = run('soft', 'a.pth', 'b.pth')
    assert (done.returncode, done.stderr) == (0, '')
    assert (tmp_path / 'b.pth').is_file()
