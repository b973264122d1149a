"""The examples run."""

import re
import sys

import pytest
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
    run('your_photos', '', tmp_path)
    assert [*(tmp_path / 'found').glob('*.png')]
