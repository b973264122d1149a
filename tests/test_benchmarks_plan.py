"""The plan of a GPU run, in small and without a GPU."""

import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

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
    assert '| spectral |' in (tmp_path / 'solvers_cpu_batch2.md').read_text()
    assert '| tests | ' in (tmp_path / 'README.md').read_text()


def test_suite_goes_on_after_a_process_that_ended(plan, tmp_path, monkeypatch):
    """Until nothing is due, or time is up."""
    left, calls = [1, 2, 3], []
    monkeypatch.setattr(plan.command, 'due', lambda args: ([], {}, left))
    monkeypatch.setattr(plan.command, 'selected', lambda args: [0, 1, 2])

    def run_process(arguments, args, limit):
        calls.append(arguments[1:])
        left.pop()
        return -11

    monkeypatch.setattr(plan, 'run_process', run_process)
    args = plan.parse_args([*SMALL, '--out', str(tmp_path)])
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
    calls, report = [], '<testsuite tests="9" failures="{0}" errors="{0}" skipped="3"/>'

    def run_process(arguments, args, limit):
        calls.append(arguments)
        (tmp_path / 'tests.xml').write_text(report.format(2 - len(calls)))

    monkeypatch.setattr(plan, 'run_process', run_process)
    args = plan.parse_args([*SMALL, '--out', str(tmp_path)])
    found = [plan.run_tests(args, time.monotonic() + 100) for _ in range(3)]
    passed = '6 passed, 0 failed, 3 skipped'
    assert found == ['4 passed, 2 failed, 3 skipped', passed, passed]
    names = {Path(x).name for x in calls[0]}
    assert len(calls) == 2 and 'test_host_syncs.py' in names
    assert 'test_benchmarks.py' not in names


def test_bad_input(plan, capsys):
    with pytest.raises(SystemExit) as stop:
        plan.parse_args([*SMALL, '--limit', '0'])
    assert stop.value.code == 2
    assert '--limit must be positive' in capsys.readouterr().err
