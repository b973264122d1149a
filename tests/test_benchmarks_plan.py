"""The plan of a GPU run, in small and without a GPU."""

import importlib.util
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch

BENCHMARKS = Path(__file__).resolve().parents[1] / 'benchmarks'
CPU = torch.device('cpu')


@pytest.fixture
def load(monkeypatch):
    """Imports one of the plan's modules."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return lambda name: import_module(f'side_by_side.plan.{name}')


@pytest.fixture
def settings(load):
    return load('unit').Settings(CPU, small=True)


@pytest.fixture
def part(load):
    """A part of three units, of which one works, one fails and one can't run here,
    and what was called."""
    unit = load('unit')
    calls = []

    def make(key, error=None):
        def run():
            calls.append(key)
            if error:
                raise error
            return [dict(variant=key)]

        return unit.Unit(key, run)

    units = [
        make('works'),
        make('fails', RuntimeError('no kernel\nmore')),
        make('missing', unit.LeftOut('needs timm')),
    ]
    return unit.Part('ops', 'three units', lambda settings: units, len), calls


def start(load, tmp_path):
    record = load('record').Record(tmp_path / 'results.json')
    record.start_run(CPU, True)
    return record


def test_units_are_recorded_and_the_part_goes_on(load, settings, part, tmp_path):
    part, calls = part
    code = load('worker').measure(part, start(load, tmp_path), settings, 60)
    assert code == 0 and calls == ['works', 'fails', 'missing']
    units = load('record').Record(tmp_path / 'results.json').units('ops')
    assert [unit['status'] for unit in units.values()] == ['done', 'failed', 'left out']
    assert units['works']['rows'] == [dict(variant='works')]
    assert units['fails']['error'] == 'RuntimeError: no kernel'
    assert units['missing']['error'] == 'needs timm'


def test_next_run_skips_what_is_done(load, settings, part, tmp_path):
    """A failure is tried once more, and no third time."""
    part, calls = part
    measure = load('worker').measure
    for again in (
        ['works', 'fails', 'missing'],
        ['fails', 'missing'],
        ['missing'],
        ['missing'],
    ):
        calls.clear()
        record = start(load, tmp_path)
        measure(part, record, settings, 60)
        assert calls == again
        calls.clear()
        # another process of the same run has nothing to do
        measure(part, record, settings, 60)
        assert not calls


def test_no_unit_begins_when_time_is_up(load, settings, part, tmp_path):
    part, calls = part
    worker = load('worker')
    assert worker.measure(part, start(load, tmp_path), settings, -1) == (
        worker.OUT_OF_TIME
    )
    assert not calls


def test_unit_that_ends_its_process(load, tmp_path):
    record = start(load, tmp_path)
    record.begin('ops', 'crash')
    record = load('record').Record(record.path)
    record.cut('ops', 'its process ended with signal 11', failed=True)
    assert record.units('ops')['crash']['status'] == 'failed'
    assert not record.is_due('ops', 'crash')
    assert start(load, tmp_path).is_due('ops', 'crash')
    # what a limit cut off is never given up
    for _ in range(4):
        record = start(load, tmp_path)
        record.begin('ops', 'slow')
        record.cut('ops', 'cut off after 60 s', failed=False)
    assert start(load, tmp_path).is_due('ops', 'slow')


def test_process_is_ended_at_its_limit(load, tmp_path):
    command = load('command')
    args = command.parse_args(['--plan', 'gpu', '--device', 'cpu', '--small'])
    path = start(load, tmp_path).path
    assert command.run_process('stability', path, args, 60, 0.2) is None


def test_results_of_another_device_are_refused(load, tmp_path, capsys):
    record = start(load, tmp_path)
    with pytest.raises(ValueError, match="'small': True.*choose another --out"):
        record.start_run(CPU, False)
    record.path.write_text('{"rows": []}')
    with pytest.raises(ValueError, match='is no record of a plan'):
        load('record').Record(record.path)
    with pytest.raises(SystemExit) as stop:
        load('command').main(
            ['--plan', 'gpu', '--device', 'cpu', '--out', str(tmp_path)]
        )
    assert stop.value.code == 2
    assert capsys.readouterr().err.count('\n') == 1


@pytest.mark.full
def test_plan_in_small(tmp_path):
    """As a user calls it, from anywhere; the second time nothing is left to do."""
    command = [sys.executable, BENCHMARKS / 'run.py', '--plan', 'gpu', '--small']
    command += ['--device', 'cpu', '--parts', 'solvers', '--out', tmp_path]
    command += ['--threads', '1']
    outs = []
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        outs.append(done.stdout)
    assert outs[0].count('solvers: solver, stage') == 3
    assert 'solvers: solver' not in outs[1]
    assert '| solvers | done | 3/3 |' in outs[1]
    data = json.loads((tmp_path / 'results.json').read_text())
    assert len(data['runs']) == 2 and set(data['parts']) == {'solvers'}
    row = data['parts']['solvers']['solver, stage 1, 2×64×24×32, float32']['rows'][0]
    assert row['variant'] == 'newton' and row['seconds'] > 0
    text = (tmp_path / 'results.md').read_text()
    assert 'figures mean nothing' in text and '| spectral |' in text


@pytest.mark.parametrize('small', (True, False))
def test_keys_are_unique(load, small):
    settings = load('unit').Settings(CPU, small)
    for part in load('parts').PARTS.values():
        keys = [unit.key for unit in part.units(settings)]
        assert keys and len(set(keys)) == len(keys), part.name


def test_functions_are_the_same_in_every_run(load, settings):
    gradients = load('gradients')
    found = gradients.functions()
    for name in ('gaussian_product, d=32, e=64', 'newton_pinv', 'feat_scale'):
        for dtype in (torch.float32, torch.bfloat16):
            (row,) = gradients.check(name, *found[name], dtype, settings)
            assert row['runs'] == 3 and not row['different']
            assert 0 < row['error'] < row['tolerance'] and 'problem' not in row


def test_races_and_errors_are_seen(load, settings):
    gradients = load('gradients')

    def make_inputs():
        return [torch.ones(7, 3)]

    (row,) = gradients.check(
        'race',
        make_inputs,
        lambda x: x + 1e-6 * torch.rand(7, 3),
        torch.float32,
        settings,
    )
    assert row['different'] == 2 and 0 < row['largest_deviation'] < 1e-5
    assert row['problem'] == '2 of 3 runs differ'
    (row,) = gradients.check(
        'wrong',
        make_inputs,
        lambda x: x if x.dtype == torch.float64 else x * 1.1,
        torch.float32,
        settings,
    )
    assert not row['different'] and row['error'] == pytest.approx(0.1, rel=1e-3)
    assert 'above 0.001' in row['problem']
    (row,) = gradients.check(
        'nan',
        make_inputs,
        lambda x: x if x.dtype == torch.float64 else x * float('nan'),
        torch.float32,
        settings,
    )
    assert not row['different'] and 'error nan' in row['problem']


def test_tests_that_need_a_gpu_are_found(load, settings, tmp_path):
    gpu_tests = load('gpu_tests')
    keys = [unit.key for unit in gpu_tests.units(settings)]
    folder = 'tests/test_functional/test_softmax_free'
    assert f'{folder}/test_inverse.py' in keys
    assert f'{folder}/test_triton/test_sweep.py' in keys
    assert not any('test_benchmarks' in key for key in keys)
    report = tmp_path / 'report.xml'
    report.write_text(
        '<testsuites><testsuite tests="9" failures="1" errors="1" skipped="3"/>'
        '</testsuites>'
    )
    assert gpu_tests.read_report(report) == dict(passed=4, failed=2, skipped=3)


def test_targets_of_a_box(load):
    """The smallest box around a position is its own."""
    boxes = torch.tensor([[[0.0, 0.0, 32.0, 16.0], [8.0, 4.0, 16.0, 12.0]]])
    labels, sides, found = load('stability').targets(
        (4, 8), (32, 64), boxes, torch.tensor([[3, 7]])
    )
    assert labels.shape == (1, 80, 4, 8) and sides.shape == (1, 4, 4, 8)
    inside = torch.zeros(4, 8)
    inside[:2, :4] = 1
    torch.testing.assert_close(found[0, 0], inside)
    # centers of cells are at 4, 12, 20, ... pixels
    assert labels[0, :, 0, 0].nonzero().tolist() == [[3]]
    assert labels[0, :, 0, 1].nonzero().tolist() == [[3]]  # on the small box's edge
    assert labels[0, :, 1, 1].nonzero().tolist() == [[3]]
    labels, sides, _ = load('stability').targets(
        (8, 16), (32, 64), boxes, torch.tensor([[3, 7]])
    )
    assert labels[0, :, 1, 2].nonzero().tolist() == [[7]]
    wanted = torch.tensor([2 / 64, 6 / 64, 2 / 32, 6 / 32])
    torch.testing.assert_close(sides[0, :, 1, 2], wanted)
    assert not labels[0, :, -1, -1].any()


def test_dense_detector_learns(load, settings, monkeypatch):
    stability = load('stability')
    small = dict(
        type='SwinTransformer',
        arch=dict(embed_dims=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 1, 1]),
    )
    (row,) = stability.train('small', small, settings)
    assert row['steps'] == 4 and row['not_finite'] == 0
    assert row['last_loss'] > 0 and row['largest_gradient'] > 0
    losses = stability.losses
    monkeypatch.setattr(stability, 'losses', lambda *args: losses(*args) * float('nan'))
    (row,) = stability.train('small', small, settings)
    assert row['problem'] == '4 of 4 steps are not finite'


def test_baselines_of_timm_where_mmdet_is_missing(load, monkeypatch):
    suites = load('suites')
    item = ('PVTv2-B1 (mmdet)', None)
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
    name, build = suites.at_hand((1, 3, 64, 64), item)
    assert name == 'PVTv2-B1 (timm)'
    monkeypatch.setitem(sys.modules, 'timm', None)
    with pytest.raises(ImportError):
        build()
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name: name)
    assert suites.at_hand((1, 3, 64, 64), item)[0] == item[0]
    assert suites.at_hand((1, 3, 64, 64), ('ours', len)) == ('ours', len)


def test_variants_that_fail_are_left_out(load, settings):
    measuring, cases = load('measuring'), import_module('side_by_side.cases')

    class Large(torch.nn.Linear):
        def forward(self, x):
            raise RuntimeError('CUDA out of memory. Tried to allocate 9 GiB')

    def missing():
        raise ImportError('No module named timm')

    case = cases.Case(
        'linear',
        dict(
            one=lambda: torch.nn.Linear(4, 4),
            large=lambda: Large(4, 4),
            missing=missing,
        ),
        (1, 3, 6, 4),
        small=(1, 3, 2, 4),
        steps=('forward', 'training step'),
    )
    rows = measuring.measure_case(case, 2, 'float32', settings)
    assert [row['error'] for row in rows[:3]] == [
        None,
        'out of memory',
        'ImportError: No module named timm',
    ]
    assert rows[3]['step'] == 'training step' and rows[3]['seconds'] > 0
    assert {row['shape'] for row in rows} == {(2, 3, 2, 4)}
    assert load('suites').number(rows) == '2 measured, 2 out of memory, 2 left out'


def test_parts_are_listed(load, capsys):
    load('command').main(['--plan', 'gpu', '--list'])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(load('parts').PARTS)


@pytest.mark.parametrize(
    'options, message',
    [
        (['--plan', 'tpu'], 'invalid choice'),
        (['--plan', 'gpu', '--parts', 'all'], 'invalid choice'),
        (['--plan', 'gpu', '--device', 'cpu', '--limit', '0'], '--limit must be posi'),
        (['--plan', 'gpu', '--device', 'cpu', '--budget', '-1'], '--budget must be po'),
        (['--plan', 'gpu', '--device', 'meta'], 'must be cpu or cuda'),
        (['--plan', 'gpu', '--suite', 'ops'], 'unrecognized arguments'),
    ],
)
def test_bad_input(load, capsys, options, message):
    with pytest.raises(SystemExit) as stop:
        load('command').parse_args(options)
    line = capsys.readouterr().err
    assert stop.value.code == 2 and message in line and line.count('\n') == 1


def test_no_gpu_is_said(load, capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: False)
    with pytest.raises(SystemExit) as stop:
        load('command').parse_args(['--plan', 'gpu'])
    assert stop.value.code == 2
    assert '--small --device cpu tries the plan' in capsys.readouterr().err
