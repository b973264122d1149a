"""How long a training takes, before it and after ten iterations."""

import re
import sys
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from loading import ROOT
from own_folders import coco, grow, photo

from mmlinattn.commands import new_config
from mmlinattn.runs import estimate
from mmlinattn.utils import load_config, measuring

pytestmark = pytest.mark.openmmlab


@pytest.mark.parametrize(
    'seconds, text',
    [
        *((29, 'less than a minute'), (31, 'about 1 min'), (99 * 60, 'about 99 min')),
        *((7800, 'about 2 h 10 min'), (7199, 'about 2 h'), (6001, 'about 1 h 40 min')),
        *((47 * 3600, 'about 47 h'), (60 * 3600, 'about 2 days')),
    ],
)
def test_durations(seconds, text):
    assert estimate.duration(seconds) == text


@pytest.mark.parametrize(
    'seconds, text', [(0.0123, '0.012 s'), (1.26, '1.3 s'), (12.6, '13 s'), (0, '0.0')]
)
def test_seconds(seconds, text):
    assert estimate.seconds_text(seconds).startswith(text)


@pytest.fixture
def clock(monkeypatch):
    """A clock that each look moves on by a second."""
    set_clock(monkeypatch, count())


def set_clock(monkeypatch, times):
    """Lets each look at the clock give the next of some times."""
    look = partial(next, iter(map(float, times)))
    monkeypatch.setattr(estimate, 'perf_counter', look)
    monkeypatch.setattr(measuring, 'time', SimpleNamespace(perf_counter=look))


@pytest.mark.parametrize('end, num', [(3.0, 1), (7.0, 3), (1000.0, 5)])
def test_a_measurement_ends_in_time(clock, end, num):
    """After one run at least; a run takes a second, and so does a look at the time."""
    ran = []
    assert estimate.measure(lambda: ran.append(0), end) == 1 and len(ran) == num


def test_the_first_run_only_prepares(monkeypatch):
    times = [0, 100, 100, 100, 101, 101, 101, 103, 103, 103, 104, 999]
    set_clock(monkeypatch, times)
    assert estimate.measure(lambda: None, 205.0) == 1


def test_a_line_after_ten_iterations(clock):
    lines = []
    hook = estimate.TimeLeft(lines.append)
    for i in range(5, 40):
        hook.after_train_iter(SimpleNamespace(iter=i, max_iters=7216), i)
    text = 'about 2 h left without validations: 7200 iterations of 1.0 s'
    assert lines == [text]


def test_a_short_training_says_nothing(clock):
    lines = []
    hook = estimate.TimeLeft(lines.append)
    for i in range(11):
        hook.after_train_iter(SimpleNamespace(iter=i, max_iters=11), i)
    assert not lines


@pytest.fixture
def written(tmp_path, monkeypatch, capsys):
    """The config and the output of new-config for photos with boxes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, 'argv', [str(ROOT / 'tools/misc/new_config.py')])
    grow(Path('my'), {'{i}.jpg': photo, 'all.json': coco()})

    def write(*options):
        argv = ['--data', 'my', '--task', 'det', '--out', 'mine.py', '--overwrite']
        argv += ['--backbone', 'softpp-micro-linear', '--epochs', '24', *options]
        new_config.main(argv)
        return load_config('mine.py'), capsys.readouterr().out

    return write


def test_what_new_config_says(written, monkeypatch):
    """A step of the config's batch, and all steps and validations of the training."""
    step, predict = 2.0, 0.5
    times = iter([step, predict])
    monkeypatch.setattr(estimate, 'measure', lambda run, end: run() or next(times))
    cfg, out = written()
    (line,) = [line for line in out.splitlines() if 'measured here' in line]
    assert re.search(
        r': measured here: 2\.0 s a photo of 192 x 128 in training, 0\.50 s in '
        r'prediction, [0-9.]+ GB of memory; the training takes about \d min',
        line,
    )
    times = iter([step, predict])
    estimated = estimate.estimate(cfg)
    batch = cfg.train_dataloader.batch_size
    validations = -(-24 // cfg.train_cfg.val_interval)
    assert (estimated.batch, estimated.memory > 0.1) == (batch, True)
    assert estimated.training == 24 * (8 // batch) * step + validations * 2 * predict
    # what can't be measured ends nothing
    cfg.model.backbone.arch = 'none'
    said = estimate.estimate_line(cfg)
    assert said.startswith('the speed was not measured (ValueError: ')
    _, out = written('--no-estimate')
    assert 'measured' not in out
