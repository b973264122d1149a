import hashlib
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
import torch
from mmengine.logging import MessageHub

from mmlinattn import weights

pytestmark = pytest.mark.modern

TOOL = Path(__file__).parents[2] / 'tools/model_converters/convert_official.py'


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
def test_wrappings(official, convert, capsys, wrap):
    converted = convert(wrap(official))
    expected = weights.convert(official, 'soft')
    assert converted['state_dict'].keys() == expected.keys()
    for key, value in expected.items():
        assert torch.equal(converted['state_dict'][key], value)
    assert converted['meta'] == dict(
        family='soft',
        source='official.pth',
        ema=False,
        arch=dict(embed_dims=[8, 16, 24, 32], depths=[1, 1, 2, 1]),
        scales=[],
        layout=dict(
            style='official',
            depths=(1, 1, 2, 1),
            last_norm='norm',
            norms=(),
            scales=(),
            prefix='',
            head='head',
        ),
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


def test_objects_need_trust(official, convert, refused):
    """Python objects are unpickled only when asked for."""
    checkpoint = dict(model=official, args=Fraction(1, 3))
    line = refused(checkpoint)
    assert '--trust' in line and 'a fractions.Fraction' in line
    assert 'head.fc.weight' in convert(checkpoint, '--trust')['state_dict']


@pytest.mark.parametrize('content', [None, b'', b'no checkpoint', b'cos\nsystem\n'])
def test_no_checkpoint(tool, tmp_path, capsys, content):
    src = tmp_path / 'src.pth'
    if content is not None:
        src.write_bytes(content)
    with pytest.raises(SystemExit):
        tool.main(['soft', str(src), str(tmp_path / 'dst.pth')])
    (line,) = capsys.readouterr().err.splitlines()
    assert str(src) in line and 'trust' not in line
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
    """As a script, from another folder."""
    torch.save(official, tmp_path / 'a.pth')
    done = subprocess.run(
        [sys.executable, str(TOOL), 'soft', 'a.pth', 'b.pth'],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, '')
    assert (tmp_path / 'b.pth').is_file()


def test_help(tool, capsys):
    with pytest.raises(SystemExit) as exit_info:
        tool.main(['--help'])
    assert exit_info.value.code == 0
    shown = capsys.readouterr().out
    words = ('soft', 'deit', 'cait', 'swin', 'cswin', 'auto', 'SRC', 'DST', 'backbone.')
    options = ('--overwrite', '--attention', '--arch', '--dry-run', '--reverse')
    for word in (*words, *options, '--publish', 'example:', 'mim run mmlinattn'):
        assert word in shown


@pytest.mark.parametrize(
    'words, message',
    [
        (('resnet',), "'resnet'"),
        (('mmlinattn',), 'FAMILY=mmlinattn converts nothing: it needs --publish'),
        (('deit', '--attention', 'elfatt'), 'needs FAMILY=swin or cswin, got deit'),
        (('cswin', '--arch', 't24181'), '--arch t24181 needs --attention elfatt'),
        (('swin', '--reverse', '--ema'), '--reverse goes with neither'),
    ],
)
def test_arguments_that_do_not_fit(tool, tmp_path, capsys, words, message):
    family, *options = words
    with pytest.raises(SystemExit) as exit_info:
        tool.main([family, 'src.pth', str(tmp_path / 'dst.pth'), *options])
    assert exit_info.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_family_is_told_from_the_keys(official, convert, capsys):
    assert convert(official, family='auto')['meta']['family'] == 'soft'
    with pytest.raises(SystemExit):
        convert({'conv1.weight': torch.zeros(1)}, '--overwrite', family='auto')
    line = capsys.readouterr().err
    assert '1 (conv1.weight) keys are not recognized' in line
    assert 'mmlinattn and of SOFT (fudan-zvg/SOFT)' in line


def test_dry_run(official, convert, tool, tmp_path, capsys):
    torch.save(official, tmp_path / 'official.pth')
    tool.main(['soft', str(tmp_path / 'official.pth'), str(convert.dst), '--dry-run'])
    out = capsys.readouterr().out
    assert not convert.dst.parent.exists()
    lines = [line for line in out.splitlines() if ' <- ' in line]
    assert len(lines) == len(weights.convert(official, 'soft'))
    merged = 'stages.3.blocks.0.attn.qkv.bias <- block4.0.attn.q.bias + '
    assert f'backbone.{merged}block4.0.attn.kv.bias' in out
    assert 'nothing written' in out


def test_reverse_is_exact(official, convert, tool, tmp_path, capsys):
    convert(official)
    back = tmp_path / 'back.pth'
    tool.main(['auto', str(convert.dst), str(back), '--reverse'])
    state_dict = torch.load(back, weights_only=True)['state_dict_ema']
    assert state_dict.keys() == official.keys()
    assert all(state_dict[key].equal(value) for key, value in official.items())
    assert 'backbone.norm3.bias -> norm.bias' in capsys.readouterr().out


def test_reverse_needs_a_family(tool, tmp_path, capsys):
    torch.save({'backbone.norm3.bias': torch.zeros(1)}, tmp_path / 'ours.pth')
    with pytest.raises(SystemExit):
        tool.main(
            ['auto', str(tmp_path / 'ours.pth'), str(tmp_path / 'x'), '--reverse']
        )
    assert 'metadata say no family to go back to' in capsys.readouterr().err


def test_publish(tool, tmp_path, official, capsys):
    """What training needs goes; the name tells the content."""
    ours = weights.convert(official, 'soft')
    trained = dict(
        meta=dict(cfg='', epoch=3),
        state_dict=ours,
        ema_state_dict={f'module.{key}': value for key, value in ours.items()},
        optimizer=dict(state={}, param_groups=[]),
        message_hub=MessageHub('publish').state_dict(),
    )
    torch.save(trained, tmp_path / 'epoch_3.pth')
    args = ('mmlinattn', tmp_path / 'epoch_3.pth', tmp_path / 'soft.pth', '--publish')
    tool.main([str(arg) for arg in args])
    assert 'left out: 3 (ema_state_dict, optimizer, message_hub)' in (
        capsys.readouterr().out
    )
    (published,) = tmp_path.glob('soft-*.pth')
    digest = hashlib.sha256(published.read_bytes()).hexdigest()
    assert published.name == f'soft-{digest[:8]}.pth'
    kept = torch.load(published, weights_only=True)
    assert kept.keys() == {'meta', 'state_dict'} and kept['meta'] == trained['meta']
    assert all(kept['state_dict'][key].equal(value) for key, value in ours.items())
    assert len(list(tmp_path.iterdir())) == 2


def test_publish_refuses_official_weights(tool, tmp_path, official, capsys):
    torch.save(official, tmp_path / 'official.pth')
    args = ('mmlinattn', tmp_path / 'official.pth', tmp_path / 'x.pth', '--publish')
    with pytest.raises(SystemExit):
        tool.main([str(arg) for arg in args])
    assert 'are not those of a model of mmlinattn' in capsys.readouterr().err
