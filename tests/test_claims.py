"""The machinery of the claims; whether a claim holds is not asserted."""

import math
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def load(monkeypatch):
    """Imports one of the claims' modules, whose package is beside the command."""
    monkeypatch.syspath_prepend(str(ROOT / 'benchmarks'))
    threads = torch.get_num_threads()
    yield lambda name: import_module(f'claims.{name}')
    torch.set_num_threads(threads)


# of 1, 2, 3: mean 2, standard deviation 1, 2.920 / sqrt(3) = 1.6859
@pytest.mark.parametrize(
    'effects, margin, doubt, verdict',
    [
        ((1, 2, 3), 0.314, None, 'supported'),
        ((1, 2, 3), 0.315, None, 'inconclusive'),
        ((1, 2, 3), 3.685, None, 'inconclusive'),
        ((1, 2, 3), 3.686, None, 'contradicted'),
        ((1, 2, 3), 0, 'saturated', 'inconclusive'),
        ((1,), 0, None, 'inconclusive'),
        ((math.nan, 1, 1), 0, None, 'inconclusive'),
    ],
)
def test_rule(load, effects, margin, doubt, verdict):
    claim = load('claim')
    part = claim.Part('new less old', lambda x: x['new'], margin, lambda runs: doubt)
    runs = {str(seed): dict(new=effect) for seed, effect in enumerate(effects)}
    assert claim.judge(part, runs).verdict == verdict


@pytest.mark.parametrize(
    'score, reason', [(0.98, 'above 0.97'), (0.3, 'below 0.450'), (0.8, 'None')]
)
def test_scores_that_tell_nothing(load, score, reason):
    runs = {'0': {'a': dict(score=score), 'b': dict(score=0.1), 'c': {}}}
    assert reason in str(load('claim').scores_doubt('score', 0.45)(runs))


def test_a_stopped_run_goes_on(load, tmp_path, monkeypatch, capsys):
    """What is finished is kept, and results of other settings are not mixed."""
    command = load('command')
    measured, stop = [], [(1, 'b')]

    def measure(unit, context):
        measured.append((context.seed, unit))
        if measured[-1] in stop:
            raise KeyboardInterrupt
        return dict(score=context.seed)

    claim = command.CLAIMS['cost']._replace(
        units=lambda settings: ['a', 'b'],
        measure=measure,
        parts=[load('claim').Part('b', lambda x: x['b']['score'])],
        tables=lambda runs: [],
        panels=lambda runs: [load('experiments.sizes').Panel('', '', '', {})],
    )
    monkeypatch.setattr(command, 'CLAIMS', dict(cost=claim))
    options = ['--seeds', '2', '--work-dir', str(tmp_path), '--out', str(tmp_path)]
    with pytest.raises(KeyboardInterrupt):
        command.main(options)
    measured.clear(), stop.clear()
    (tmp_path / 'claims' / 'cost.txt').write_text('As expected.')
    command.main(options)
    assert measured == [(1, 'b')]
    page = (tmp_path / 'claims.md').read_text()
    assert '| b | +0.5 |' in page and 'by hand: As expected.' in page
    with pytest.raises(SystemExit):
        command.main([*options, '--smoke'])
    error = capsys.readouterr().err
    assert 'other smoke and settings' in error and '--overwrite' in error
    command.main([*options, '--smoke', '--overwrite'])
    assert 'the figures mean nothing' in (tmp_path / 'claims.md').read_text()


@pytest.mark.parametrize(
    'options, named',
    [
        (['--seeds', '11'], '--seeds must be 1 to 10, got 11'),
        (['--claim', 'sizes', '--data', '/nowhere'], '--data must have images in'),
        (['--report'], 'cost.json is not a record of this command'),
    ],
)
def test_bad_input(load, tmp_path, capsys, options, named):
    if '--report' in options:
        (tmp_path / 'claims').mkdir()
        (tmp_path / 'claims' / 'cost.json').write_text('[]')
    with pytest.raises(SystemExit) as stop:
        load('command').main(['--out', str(tmp_path), *options])
    line = capsys.readouterr().err
    assert stop.value.code == 2 and named in line and line.count('\n') == 1


def test_a_folder_of_images(load, tmp_path):
    """Evenly spread over the classes, the middle of each image."""
    for split in ('train', 'val'):
        for value, name in enumerate(('cat', 'dog')):
            (tmp_path / split / name).mkdir(parents=True)
            pixels = np.full((40, 60, 3), 200 * value, np.uint8)
            for i in range(4):
                Image.fromarray(pixels).save(tmp_path / split / name / f'{i}.png')
    made = load('data').Data(tmp_path, tmp_path, (4, 3))
    images, labels = made.resized('train', 32)
    assert images.shape == (4, 3, 32, 32) and images.dtype == torch.uint8
    assert labels.tolist() == [0, 0, 1, 1] and made.num_classes() == 2
    assert (images == 200 * labels[:, None, None, None]).all()


def test_the_page_follows_from_the_numbers(load):
    """Verdicts of the documentation are computed, never written by hand."""
    command = load('command')
    docs = ROOT / 'docs'
    records = [command.Record(claim, docs) for claim in command.CLAIMS.values()]
    assert (docs / 'claims.md').read_text('utf-8') == load('report').page(records)


def test_smoke(tmp_path):
    """Claims from data to page, with models too small to tell anything."""
    command = [sys.executable, ROOT / 'benchmarks' / 'claims' / 'run.py', '--smoke']
    command += ['--seeds', '1', '--threads', '1', '--work-dir', tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / 'results' / 'claims.md').read_text('utf-8')
    assert 'one seed has no spread' in page and 'Not measured' not in page
    for name in ('cost', 'inverse', 'oversmoothing', 'sizes'):
        assert (tmp_path / 'results' / 'claims' / f'{name}.png').stat().st_size
