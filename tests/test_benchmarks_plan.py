"""The plan of a GPU run, in small and without a GPU."""

import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[1]
SMALL = ['--plan', 'gpu', '--small', '--device', 'cpu']


@pytest.fixture
def plan(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / 'benchmarks'))
    return import_module('side_by_side.plan')


@pytest.mark.full
def test_plan_in_small(tmp_path):
    """As a user calls it, from anywhere; the second time nothing is left to do."""
    command = [sys.executable, ROOT / 'benchmarks' / 'run.py', *SMALL]
    command += ['--parts', 'tests', 'solvers', '--out', tmp_path]
    for out in ('solvers, float32, batch 2: done', 'written'):
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip().startswith(out)
        assert '| solvers, float32, batch 2 | 3 of 3 cases |' in done.stdout
    text = (tmp_path / 'solvers_cpu_batch2.md').read_text()
    assert 'figures mean nothing' in text and '| spectral |' in text
    assert '| tests | ' in (tmp_path / 'README.md').read_text()


def test_suite_goes_on_after_a_process_that_ended(plan, tmp_path, monkeypatch):
    """Until nothing is due, or time is up."""
    due = [3]
    monkeypatch.setattr(
        plan.command, 'due', lambda args: ([], {}, list(range(max(due[0], 0))))
    )
    monkeypatch.setattr(plan.command, 'selected', lambda args: [0, 1, 2])

    def run_process(arguments, args, limit):
        calls.append(arguments[1:])
        due[0] -= 1
        return -11

    monkeypatch.setattr(plan, 'run_process', run_process)
    args = plan.parse_args([*SMALL, '--out', str(tmp_path)])
    calls = []
    options = ['--suite', 'ops', '--dtype', 'float32', '--batch', '1']
    state = plan.run_suite('ops', options, args, time.monotonic() + 1)
    assert not calls and state == '0 of 3 cases'
    state = plan.run_suite('ops', options, args, time.monotonic() + 100)
    assert len(calls) == 3 and {'--resume', '--small'} <= set(calls[0])
    assert state == '0 of 3 cases, 3 ended their process twice'


def test_process_is_ended_at_its_limit(plan, tmp_path):
    args = plan.parse_args([*SMALL, '--out', str(tmp_path)])
    assert plan.run_process(['-c', 'import time; time.sleep(60)'], args, 0.2) is None
    assert plan.run_process(['-c', 'exit(3)'], args, 60) == 3


def test_tests_that_need_a_gpu(plan, tmp_path, monkeypatch):
    """Their files are found; what has passed is not run again."""
    report = (
        '<testsuites><testsuite tests="9" failures="{}" errors="1" skipped="3"/>'
        '</testsuites>'
    )
    calls = []

    def run_process(arguments, args, limit):
        calls.append(arguments)
        (tmp_path / 'tests.xml').write_text(report.format(1))

    monkeypatch.setattr(plan, 'run_process', run_process)
    args = plan.parse_args([*SMALL, '--out', str(tmp_path)])
    end = time.monotonic() + 100
    for _ in range(2):
        assert plan.run_tests(args, end) == '4 passed, 2 failed, 3 skipped'
    (tmp_path / 'tests.xml').write_text(report.format(0).replace('"1"', '"0"'))
    assert plan.run_tests(args, end) == '6 passed, 0 failed, 3 skipped'
    assert len(calls) == 2
    names = {Path(x).name for x in calls[0]}
    assert {'test_host_syncs.py', 'test_inverse.py'} <= names
    assert not any('benchmarks' in name for name in names)


@pytest.mark.parametrize(
    'options, message',
    [
        (['--plan', 'tpu'], 'invalid choice'),
        (['--plan', 'gpu', '--parts', 'all'], 'invalid choice'),
        ([*SMALL, '--limit', '0'], '--limit must be posi'),
        ([*SMALL, '--budget', '-1'], '--budget must be po'),
        (['--plan', 'gpu', '--device', 'meta'], 'must be cpu or cuda'),
        (['--plan', 'gpu', '--suite', 'ops'], 'unrecognized arguments'),
        (['--plan', 'gpu'], '--small --device cpu tries the plan'),
    ],
)
def test_bad_input(plan, capsys, monkeypatch, options, message):
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: False)
    with pytest.raises(SystemExit) as stop:
        plan.parse_args(options)
    line = capsys.readouterr().err
    assert stop.value.code == 2 and message in line and line.count('\n') == 1
