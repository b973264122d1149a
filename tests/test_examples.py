"""The examples run."""

import json
import os
import re
import sys
from pathlib import Path

import pytest
import torch
from loading import ROOT, load_module, run_command
from small_configs import draw_shapes


def run(name, *args):
    script = ROOT / 'examples' / f'{name}.py'
    return run_command(sys.executable, '-W', 'ignore', script, *args).splitlines()


@pytest.mark.parametrize(
    'name, args, last',
    [
        ('plain_pytorch', (), r'(9\d|100)\b.*%'),
        ('torchvision_detectors', ('softpp_micro_linear',), 'FCOS .*classification'),
    ],
)
def test_example(name, args, last, capsys):
    load_module(f'examples/{name}.py').main(*args)
    *_, line = capsys.readouterr().out.splitlines()
    assert re.match(last, line), line


def test_frequencies(tmp_path, capsys):
    """No factor exceeds its bound, with a class token and without."""
    for name, size in (
        ('antioversmoothing/deit-s12', 112),
        ('soft/softpp-micro-linear', 64),
    ):
        words = (
            f'configs/{name}_in1k.py',
            '--size',
            str(size),
            '--out',
            str(tmp_path / 'x'),
        )
        load_module('examples/frequencies.py').main(str(ROOT / words[0]), *words[1:])
        rows = json.loads((tmp_path / 'x.json').read_text())
        pairs = [(k, row) for row in rows.values() for k in row if f'{k}, bound' in row]
        assert {k for k, _ in pairs} == {'heads', 'heads + shortcut', 'FFN'}
        assert all(0 < row[k] <= row[f'{k}, bound'] for k, row in pairs)
    names = {x.name for x in tmp_path.iterdir()}
    assert names == {'x.json', 'x.png', 'x_spectra.png'}


def test_landmarks(tmp_path, capsys):
    """Shares of tokens are what the figure says."""
    script = load_module('examples/landmarks.py')
    even, one = torch.full((4, 5), 1 / 20), torch.zeros(4, 5)
    one[2, 3] = 1
    assert script.half_of(even) == 0.5 and script.half_of(one) == 0.05
    photos = tmp_path / 'photos'
    draw_shapes('imagenet', tmp_path / 'data', num_train=2, num_val=1, size=64)
    photos.mkdir()
    for i, path in enumerate(sorted((tmp_path / 'data').rglob('*.[jJ]*[gG]'))[:2]):
        path.rename(photos / f'{i}.jpg')
    out = tmp_path / 'landmarks.png'
    words = '--photos', str(photos), '--steps', '1', '--out', str(out)
    script.main(str(photos / '0.jpg'), *words)
    assert out.stat().st_size > 10_000
    assert 'of new crops of 2 photos are right' in capsys.readouterr().out


@pytest.mark.openmmlab
def test_own_attention():
    """It registers a class, and has a process for it."""
    assert run('own_attention')[-1].startswith('RetinaNet: [(256,')


@pytest.mark.openmmlab
def test_detect_with_transformers(tmp_path):
    data = tmp_path / 'data'
    draw_shapes('shapes', data, num_val=1, size=160)
    files = [data / 'annotations/instances_train2017.json', data / 'train2017']
    options = ['--backbone', 'softpp_micro_linear', '--size', '160', '--layers', '2']
    lines = run('detect_with_transformers', *files, tmp_path, *options, '--epochs', '1')
    assert re.match(r'(circle|square|triangle) [01]\.', lines[-1])


@pytest.mark.openmmlab
@pytest.mark.full
def test_your_photos(tmp_path):
    lines = run('your_photos', '', tmp_path)
    assert lines[-1].startswith('export:') and [*(tmp_path / 'run').glob('best_*.pth')]


@pytest.mark.full
@pytest.mark.skipif(sys.version_info < (3, 12), reason='it is for the modern stack')
def test_notebook(tmp_path):
    """Every cell but those that install; files have blanks in their names."""
    notebook, modern = (
        (ROOT / f'requirements/{x}.txt').read_text().splitlines()
        for x in ('notebook', 'modern')
    )
    assert {x for x in notebook if '==' in x} <= set(modern)
    (tmp_path / 'mmlinattn').symlink_to(ROOT)
    notebook = json.loads((ROOT / 'examples/train_on_photos.ipynb').read_text('utf-8'))
    cells = [x['source'] for x in notebook['cells'] if x['cell_type'] == 'code']
    lines = ['import subprocess', 'display = Image = str']
    for line in '\n'.join(map(''.join, cells)).split('\n'):
        if line.startswith('!'):
            installs = re.match(r'!(git|pip|python -m mmlinattn.ops)\b', line)
            call = f'subprocess.run(f{line[1:]!r}, shell=True, check=True)'
            lines.append('' if installs else call)
        elif not line.startswith('from IPython'):
            lines.append(line)
    script = '\n'.join(lines)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ['PATH']])
    (tmp_path / 'installed.txt').touch()
    (tmp_path / 'now.txt').touch()
    env = dict(os.environ, PATH=path)
    run_command(sys.executable, '-c', script, cwd=tmp_path, env=env)
    assert (tmp_path / 'mine.onnx').exists()
    assert [*(tmp_path / 'found').rglob('*_predictions.png')]
    assert (tmp_path / 'predictions/predictions.json').exists()
