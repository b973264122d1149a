import argparse
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from mmengine.registry import MODELS
from mmengine.runner import load_checkpoint

ROOT = Path(__file__).parents[2]
TOOL = ROOT / 'tools/model_converters/convert_official.py'
DATA = ROOT / 'tests/data/official'
REFERENCE = ROOT.parent / 'shared/reference'

pytestmark = pytest.mark.modern


def load_module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


convert_official = load_module(TOOL)
soft_fixture = load_module(DATA / 'soft_fixture.py')


@pytest.fixture(scope='module')
def official():
    return soft_fixture.weights()


@pytest.fixture
def convert(tmp_path):
    """Runs the tool on a checkpoint; its path is ``convert.dst``."""

    def run(checkpoint, *options):
        src = tmp_path / 'official.pth'
        torch.save(checkpoint, src)
        convert_official.main(['soft', str(src), str(run.dst), *options])
        return torch.load(run.dst, weights_only=True)

    run.dst = tmp_path / 'new' / 'ours.pth'
    return run


@pytest.fixture
def refused(convert, capsys):
    """Runs the tool on what it can't take, and returns the line it prints."""

    def run(checkpoint, *options):
        with pytest.raises(SystemExit) as exit_info:
            convert(checkpoint, *options)
        assert exit_info.value.code == 2
        assert not convert.dst.exists()
        line, = capsys.readouterr().err.splitlines()
        assert 'official.pth' in line
        return line

    return run


def relative_error(ours, theirs):
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


@torch.no_grad()
def check_outputs(checkpoint, arch, image, stages, logits, tolerance, **options):
    """A converted file against what the official code made of the same weights."""
    backbone = dict(type='mmlinattn.SOFT', arch=arch, **options)
    init_cfg = dict(
        type='Pretrained', checkpoint=str(checkpoint), prefix='backbone.')
    model = MODELS.build({**backbone, 'init_cfg': init_cfg})
    model.init_weights()
    classifier = MODELS.build(
        dict(
            type='mmpretrain.ImageClassifier',
            backbone={**backbone, 'out_type': 'cls_token'},
            head=dict(
                type='mmpretrain.LinearClsHead',
                num_classes=logits.size(1),
                in_channels=arch['embed_dims'][-1]),
            data_preprocessor=dict(type='mmpretrain.ClsDataPreprocessor')))
    load_checkpoint(classifier, str(checkpoint), strict=True)
    maps = model.eval()(image)
    assert [m.shape for m in maps] == [s.shape for s in stages]
    errors = [relative_error(m, s) for m, s in zip(maps, stages)]
    errors.append(relative_error(classifier.eval()(image), logits))
    assert max(errors) < tolerance, errors


@pytest.mark.parametrize('solver', ['newton', 'spectral'])
@pytest.mark.parametrize('image', soft_fixture.IMAGES)
@pytest.mark.parametrize('variant', soft_fixture.VARIANTS)
def test_outputs_of_official_code(official, convert, variant, image, solver):
    pytest.importorskip('mmpretrain')
    convert(official)
    outputs = {
        key.rpartition('_')[2]: value
        for key, value in soft_fixture.outputs().items()
        if key.startswith(f'{variant}_{image}_')
    }
    logits = outputs.pop('logits')
    check_outputs(
        convert.dst,
        soft_fixture.ARCH,
        soft_fixture.image(image), [outputs[key] for key in sorted(outputs)],
        logits,
        tolerance=1e-5,
        attn_norm=variant == 'softpp',
        solver=solver)


@pytest.mark.parametrize('solver', ['newton', 'spectral'])
@pytest.mark.parametrize('name, tolerance', [
    ('soft_224', 1e-5),
    ('softpp_224', 1e-5),
    ('soft_smooth', 1e-4),
    ('softpp_smooth', 1e-3),
])
def test_reference(convert, name, tolerance, solver):
    pytest.importorskip('mmpretrain')
    path = REFERENCE / f'{name}.pth'
    if not path.is_file():
        pytest.skip(f'{path} is not here')
    reference = torch.load(path, map_location='cpu', weights_only=True)
    convert_official.main(['soft', str(path), str(convert.dst)])
    attn_norm = reference['arch'].pop('norm')
    check_outputs(
        convert.dst,
        reference['arch'],
        reference['input'],
        reference['stages'],
        reference['logits'],
        tolerance,
        attn_norm=attn_norm,
        solver=solver)


def test_keys_of_full_model():
    """Every key and shape of the official soft_tiny, without its 13M weights."""
    shapes = json.loads((DATA / 'soft_keys.json').read_text())['soft_tiny']
    state_dict = {
        key: torch.empty(shape, device='meta')
        for key, shape in shapes.items()
    }
    converted = convert_official.convert(state_dict, 'soft')
    assert converted.pop('head.fc.weight').shape == (1000, 512)
    assert converted.pop('head.fc.bias').shape == (1000, )
    with torch.device('meta'):
        model = MODELS.build(dict(type='mmlinattn.SOFT', arch='tiny'))
    assert {key: value.shape for key, value in converted.items()} == {
        f'backbone.{key}': value.shape
        for key, value in model.state_dict().items()
    }
    assert convert_official.soft_arch(state_dict) == {
        key: model.arch_zoo['tiny'][key] for key in ('embed_dims', 'depths')
    }


@pytest.mark.parametrize('wrap', [
    lambda weights: weights,
    lambda weights: dict(model=weights),
    lambda weights: dict(state_dict=weights, epoch=3, optimizer=dict(lr=0.1)),
    lambda weights: {f'module.{key}': value for key, value in weights.items()},
])
def test_wrappings(official, convert, capsys, wrap):
    converted = convert(wrap(official))
    expected = convert_official.convert(official, 'soft')
    assert converted['state_dict'].keys() == expected.keys()
    for key, value in expected.items():
        assert torch.equal(converted['state_dict'][key], value)
    assert converted['meta'] == dict(
        family='soft', source='official.pth', ema=False,
        arch=dict(embed_dims=[8, 16, 24, 32], depths=[1, 1, 2, 1]))
    out = capsys.readouterr().out
    assert f'all {len(official)} official keys to {len(expected)} of ours' in out
    assert 'a head of 5 classes' in out


def test_merged_projection(official):
    converted = convert_official.convert(official, 'soft')
    query, key_value = converted['backbone.stages.3.blocks.0.attn.qkv.weight'].split(
        [32, 64])
    assert torch.equal(query, official['block4.0.attn.q.weight'])
    assert torch.equal(key_value, official['block4.0.attn.kv.weight'])


def test_moving_average(official, convert, capsys):
    average = {key: value + 1 for key, value in official.items()}
    checkpoint = dict(state_dict=official, state_dict_ema=average)
    converted = convert(checkpoint)
    assert '--ema' in capsys.readouterr().out
    assert torch.equal(
        converted['state_dict']['head.fc.bias'], official['head.bias'])
    converted = convert(checkpoint, '--ema', '--overwrite')
    assert torch.equal(
        converted['state_dict']['head.fc.bias'], official['head.bias'] + 1)
    assert converted['meta']['ema']


def test_without_head(official, convert, capsys):
    headless = {k: v for k, v in official.items() if not k.startswith('head.')}
    converted = convert(headless)['state_dict']
    assert all(key.startswith('backbone.') for key in converted)
    assert 'no head' in capsys.readouterr().out


def test_leftover_key(official, refused):
    line = refused({**official, 'block2.0.att.extra.weight': torch.zeros(1)})
    assert 'missing 0, left over 1 (block2.0.att.extra.weight)' in line


@pytest.mark.parametrize('key', [
    'cls_token', 'norm.bias', 'head.bias', 'block1.0.att.mha.W_q.weight',
    'block3.0.att.mha.attn.conv.weight', 'block4.0.attn.kv.bias',
    'patch_embed2.proj.1.running_var'
])
def test_missing_key(official, refused, key):
    assert f'missing 1 ({key}), left over 0' in refused(
        {name: value for name, value in official.items() if name != key})


@pytest.mark.parametrize('prefix', ['block3.0.', 'block2.', 'patch_embed4.'])
def test_missing_module(official, refused, prefix):
    line = refused({k: v for k, v in official.items() if not k.startswith(prefix)})
    assert f'({prefix}' in line and 'left over 0' in line


def test_other_family(refused):
    line = refused({
        'cls_token': torch.zeros(1, 1, 8),
        'pos_embed': torch.zeros(1, 5, 8),
        'blocks.0.attn.qkv.weight': torch.zeros(24, 8)
    })
    assert "official 'soft' model" in line
    assert 'pos_embed1' in line and 'blocks.0.attn.qkv.weight' in line


@pytest.mark.parametrize('checkpoint', [
    {}, dict(epoch=1), dict(model={}), dict(model=[torch.zeros(1)]), [1]
])
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
def test_no_checkpoint(tmp_path, capsys, content):
    src = tmp_path / 'src.pth'
    if content is not None:
        src.write_bytes(content)
    with pytest.raises(SystemExit):
        convert_official.main(['soft', str(src), str(tmp_path / 'dst.pth')])
    line, = capsys.readouterr().err.splitlines()
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
        return subprocess.run([sys.executable, str(TOOL), *map(str, args)],
                              capture_output=True,
                              text=True,
                              cwd=tmp_path)

    shown = run('--help')
    assert shown.returncode == 0
    for word in ('soft', 'SRC', 'DST', 'example:', 'backbone.', '--overwrite'):
        assert word in shown.stdout
    failed = run('resnet', 'a.pth', 'b.pth')
    assert failed.returncode == 2
    assert len(failed.stderr.splitlines()) == 1 and "'resnet'" in failed.stderr
    torch.save(official, tmp_path / 'a.pth')
    done = run('soft', 'a.pth', 'b.pth')
    assert (done.returncode, done.stderr) == (0, '')
    assert (tmp_path / 'b.pth').is_file()
