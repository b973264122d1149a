"""What benchmarks/long_run.py makes of a record, and a short run of it."""

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

BENCHMARKS = Path(__file__).resolve().parents[1] / 'benchmarks'


@pytest.fixture
def long_run(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module('long_run')


def record(memory, new=(0,), **changes):
    """Lines of a record with such values of memory."""
    line = dict(dict(loss=1.0, seconds=2.0, cpu_seconds=1.0), **changes)
    return [
        dict(line, iter=20 * i + 20, memory=value, new=i in new)
        for i, value in enumerate(memory)
    ]


@pytest.mark.parametrize(
    'lines, growth, kept',
    [
        (record([50, *[100] * 49]), 0, True),
        (record([100 + i / 10 for i in range(50)]), 0.033, False),
        (record([*[100] * 20, *[103] * 30]), 0.03, False),
        (record([100] * 45 + [90] * 5), -0.1, True),
        # a new process warms up again
        (record([50] * 5 + [100] * 20 + [50] * 5 + [101] * 20, (0, 25)), 0.01, True),
        (record([100] * 20, loss=None), 0, False),
    ],
)
def test_growth_is_seen(long_run, lines, growth, kept):
    found = long_run.summarize(lines)
    assert found['growth'] == pytest.approx(growth, abs=0.005)
    assert long_run.holds(found) == kept


def test_the_hook_goes_on_with_a_record(long_run, tmp_path):
    hook = long_run.LongRunHook(release=True)
    runner = SimpleNamespace(work_dir=tmp_path, iter=0)
    for first, losses in ((0, {}), (20, {25: float('nan')})):
        runner.iter = first
        hook.before_train(runner)
        for runner.iter in range(first, first + 40):
            hook.before_train_iter(runner, 0)
            loss = torch.tensor(losses.get(runner.iter, runner.iter))
            hook.after_train_iter(runner, 0, outputs=dict(loss=loss))
    lines = long_run.read_record(tmp_path / long_run.RECORD)
    assert [line['iter'] for line in lines] == [20, 40, 60]
    assert [line['new'] for line in lines] == [True, True, False]
    assert [line['loss'] for line in lines] == [19, None, 59]
    assert all(min(x['memory'], x['before_release']) > 2**20 for x in lines)


def test_report_of_what_is_there(long_run, tmp_path, capsys):
    options = ['--report-only', '--work-dir', str(tmp_path / 'runs')]
    options += ['--out', str(tmp_path / 'report.json')]
    with pytest.raises(SystemExit):
        long_run.main(options)
    assert 'nothing is recorded' in capsys.readouterr().err
    (tmp_path / 'runs' / 'fixed').mkdir(parents=True)
    lines = record([2**20 * 100] * 30, before_release=2**20 * 120)
    (tmp_path / 'runs' / 'fixed' / long_run.RECORD).write_text(
        '\n'.join(map(json.dumps, lines))
    )
    with pytest.raises(SystemExit) as stop:
        long_run.main(options)
    assert stop.value.code == 0
    assert 'fixed sizes, 600 iterations: 100 MiB' in capsys.readouterr().out
    assert json.loads((tmp_path / 'report.json').read_text())['fixed'] == lines
    assert (tmp_path / 'report.png').stat().st_size < 100_000


@pytest.mark.full
@pytest.mark.modern
def test_a_run_that_was_stopped(tmp_path):
    """It goes on, and ends with a report and curves."""
    pytest.importorskip('mmdet')
    command = [sys.executable, BENCHMARKS / 'long_run.py', '--iterations', '200']
    command += ['--sizes', 'random', '--work-dir', tmp_path / 'runs']
    command += ['--out', tmp_path / 'report.json']
    lines = tmp_path / 'runs' / 'random' / 'long_run.jsonl'
    first = subprocess.Popen(list(map(str, command)), start_new_session=True)
    try:
        while not lines.exists() or len(lines.read_text().splitlines()) < 3:
            assert first.poll() is None
            time.sleep(0.1)
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    done = subprocess.run(list(map(str, command)))
    assert done.returncode in (0, 1)  # too short to be judged
    report = json.loads((tmp_path / 'report.json').read_text())
    assert [line['iter'] for line in report['random']] == list(range(20, 201, 20))
    assert report['summaries']['random']['finite']
