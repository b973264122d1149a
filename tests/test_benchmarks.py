"""The suites and the plan of a GPU run; no measurement is asserted."""

import json
import subprocess
import sys
import time
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
import torch

from mmlinattn import functional

BENCHMARKS = Path(__file__).resolve().parents[1] / 'benchmarks'
SMALL = ['--plan', 'gpu', '--small', '--device', 'cpu']


@pytest.fixture
def load(monkeypatch):
    """Imports one of the benchmarks' modules, whose package is beside the command."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return lambda name: import_module(f'side_by_side.{name}')


@pytest.fixture
def tiny(load, monkeypatch):
    """A suite of one case, measured without processes of its own."""
    sizes = dict(one=4, two=8, broken=8)

    def layers(size):
        return torch.nn.Sequential(torch.nn.Linear(4, size), torch.nn.Linear(size, 4))

    case = load('cases').Case(
        'linear',
        {name: partial(layers, size) for name, size in sizes.items()},
        (1, 3, 6, 4),
        small=(1, 3, 2, 4),
        paper={('two', 'two'): (2, 3)},
    )

    def peak(index, variant, *args):
        if variant == 'broken':
            return dict(error='out of memory')
        return dict(bytes=sizes[variant] * 2**20)

    monkeypatch.setitem(load('registry').SUITES, 'ops', lambda: [case])
    monkeypatch.setattr(load('command'), 'peak_of_variant', peak)
    return case


@pytest.fixture
def uninitialized(load, monkeypatch):
    """Builds models without the time that their initial weights take."""
    monkeypatch.setattr(load('models'), 'initialized', lambda model: model)


def test_variants_can_be_built_and_do_the_same_work(load, uninitialized):
    """Functions' own tests compare their outputs."""
    cases, seen = load('cases'), set()
    for suite, make in load('registry').SUITES.items():
        for case in make():
            assert {*case.rounds, *sum(case.paper, ())} <= set(case.variants)
            if case.name in seen or suite in ('detectors', 'mmcv_ops'):
                continue
            seen.add(case.name)
            modules = {}
            for name, build in case.variants.items():
                # mmdet's models are made of values
                with torch.device('cpu' if 'mmdet' in name else 'meta'):
                    modules[name] = build().to('meta')
            if suite not in ('ops', 'solvers') and 'explicit' not in modules:
                inputs = cases.place(case.inputs(case.small, torch.float32), 'meta')
                cases.check_same_work(case.title, modules, inputs)


@pytest.mark.parametrize(
    'method, head',
    [
        ('RetinaNet', 'bbox_head'),
        pytest.param('Mask R-CNN', 'rpn_head', marks=pytest.mark.full),
    ],
)
def test_detectors_do_the_same_work(load, uninitialized, method, head):
    """All backbones give maps of the same strides, and heads as many anchors."""
    (case,) = [x for x in load('registry').detectors() if x.name == method]
    modules = {name: build() for name, build in case.variants.items()}
    inputs = case.inputs(case.small, torch.float32)
    load('cases').check_same_work(method, modules, inputs)
    assert all({'neck', head} <= {*module.work} for module in modules.values())


def test_other_work_is_refused(load):
    """Maps of another stride; other channels are the variants' own."""
    layers = {
        name: torch.nn.Conv2d(3, dims, 1, stride)
        for name, dims, stride in (('ours', 8, 2), ('wider', 9, 2), ('finer', 8, 1))
    }
    check, x = load('cases').check_same_work, torch.rand(1, 3, 4, 4)
    check('convolution', dict(ours=layers['ours'], wider=layers['wider']), (x,))
    with pytest.raises(ValueError, match=r'finer gives \(1, 4, 4\), ours gives'):
        check('convolution', layers, (x,))


@pytest.mark.parametrize(
    'suite, only', [('ops', 'stage 3'), ('solvers', ''), ('memory', 'one')]
)
def test_small_suites(load, suite, only, capsys):
    """Every step of every variant; models take longer."""
    options = ['--small', '--rounds', '1', '--threads', '1']
    load('command').main(['--suite', suite, '--only', only, *options])
    assert 'left out' not in capsys.readouterr().out


@pytest.mark.parametrize('name', ['explicit_attention', 'analytic_attention'])
def test_explicit_forms_are_our_operator(load, name):
    """They agree whether Newton has converged or not."""
    explicit = getattr(load('baselines'), name)
    inputs = [
        (scale * torch.randn(2, 2, n, 8, dtype=torch.float64)).requires_grad_()
        for n, scale in ((20, 1), (6, 1.5), (20, 1))
    ]
    out, found = functional.softmax_free_attention(*inputs), explicit(*inputs)
    torch.testing.assert_close(found, out)
    weight = torch.randn_like(out)
    grads, wanted = (
        torch.autograd.grad((weight * x).sum(), inputs) for x in (found, out)
    )
    torch.testing.assert_close(grads, wanted, rtol=1e-6, atol=1e-7)
    make = load('cases').softmax_free_inputs
    inputs = make((1, 32, 48, 64), torch.float64, num_heads=1, ratio=4)
    out = functional.softmax_free_attention(*inputs)
    torch.testing.assert_close(explicit(*inputs), out, rtol=1e-5, atol=1e-5)


def test_official_form_in_a_model(load):
    models, baselines = load('models'), load('baselines')
    small = dict(embed_dims=[8, 16], depths=[1, 1], num_heads=[1, 2])
    more = dict(sampling_ratios=(4, 1), kernel_sizes=(3, 3))
    cfg = dict(type='SOFT', arch=small, attn_norm=True, **more)
    ours = models.backbone(**cfg)()
    explicit = models.backbone(**cfg, context=baselines.explicit_in_models)()
    explicit.module.load_state_dict(ours.state_dict())
    x = torch.rand(1, 3, 64, 64)
    torch.testing.assert_close(explicit.eval()(x), ours.eval()(x), rtol=1e-3, atol=1e-4)


def test_references_of_timm_where_mmdet_is_missing(load, monkeypatch):
    models = load('models')
    monkeypatch.setattr(models, 'find_spec', lambda name: None)
    assert list(models.references((64, 64))) == ['PVTv2-B1 (timm)', 'Swin-T (timm)']
    for build in models.references((64, 64)).values():
        assert len(build().eval()(torch.rand(1, 3, 64, 64))) == 4


# ------------------------------------------------------------------------- arithmetic
def test_ratios_are_over_the_latest_round_of_the_baseline(load):
    summary = load('timing').summary
    found = summary({0: 2.0, 1: 6.0, 2: 4.0, 3: 8.0}, {0: 1.0, 2: 2.0})
    assert found['seconds'] == 5
    assert found['ratio'] == 3 and found['ratio_quartiles'] == (2, 4.5)
    once = summary({0: 2.0})
    assert once['seconds_quartiles'] is None and 'ratio' not in once


def test_shares_of_operators(load):
    profiles = [
        dict(operators=dict(a=(8.0, 2), b=(1.9, 1), c=(0.1, 7))),
        dict(operators=dict(c=(0.5, 1), b=(0.5, 1))),
    ]
    first, second = load('operators').shares(profiles)
    assert first == dict(a=0.8, b=0.19, c=0.01, others=pytest.approx(0))
    assert second == dict(a=0, b=0.5, c=0.5, others=0)


def test_growth_of_memory(load, tmp_path):
    report = load('report')
    sizes = [('large', 1, 1), *(('fits', n, n**1.5) for n in (1, 2, 4))]
    rows = [
        dict(case='x', step='', shape=(1, 8, 10, n), variant=name, bytes=size * 2**20)
        for name, n, size in sizes
    ]
    text = report.growth_tables(report.growth(rows))
    assert '| fits | 1.0 | 2.8 | 8.0 | 1.500 |' in text
    assert '| large | 1.0 | - | - | - |' in text
    load('plot').plot_growth(rows, tmp_path / 'growth.png')
    assert (tmp_path / 'growth.png').read_bytes()[1:4] == b'PNG'


# ------------------------------------------------------------------------- the command
def test_results_are_written(load, tiny, tmp_path, capsys):
    options = ['--suite', 'ops', '--rounds', '2', '--batch', '2', '--small', '--out']
    load('command').main([*options, str(tmp_path)])
    assert 'broken is left out: out of memory' in capsys.readouterr().out
    lines = (tmp_path / 'ops_cpu_batch2.json').read_text()
    record = json.loads(lines)
    assert lines.count('\n') == len(record['rows']) + 7  # a row is a line
    first = [x for x in record['rows'] if x['variant'] == 'one']
    assert [x['step'] for x in first] == ['forward', 'forward+backward']
    for row in first:
        assert row['baseline'] == 'one' and row['shape'] == [2, 3, 2, 4]
        assert row['ratio'] == row['memory_ratio'] == 1
    # the paper's comparison has a row of its own
    extra = [row for row in record['rows'] if 'paper' in row]
    assert [row['baseline'] for row in extra] == ['two', 'two']
    text = (tmp_path / 'ops_cpu_batch2.md').read_text()
    assert '| linear | 2×3×2×4 | forward | two | two |' in text
    assert (tmp_path / 'ops_cpu_batch2.png').read_bytes()[1:4] == b'PNG'
    load('command').main([*options, str(tmp_path), '--redraw', '--format', 'pdf'])
    assert (tmp_path / 'ops_cpu_batch2.pdf').read_bytes()[:4] == b'%PDF'
    with pytest.raises(SystemExit):
        load('command').main([*options, str(tmp_path / 'none'), '--redraw'])
    assert '--redraw needs results of this suite in --out' in capsys.readouterr().err


def test_what_is_above_the_mark_stays(load, tmp_path):
    report, path = load('report'), tmp_path / 'page.md'
    report.write_page(path, 'old\n')
    assert path.read_text() == f'{report.MEASURED}\nold\n'
    path.write_text(f'# By hand\n\n{path.read_text()}')
    report.write_page(path, 'new\n')
    assert path.read_text() == f'# By hand\n\n{report.MEASURED}\nnew\n'


def test_resume(load, tiny, tmp_path, monkeypatch, capsys):
    """Results are kept; a case that ends its process is tried twice."""
    command = load('command')
    cases = [tiny, tiny._replace(name='ends')]
    monkeypatch.setitem(command.SUITES, 'ops', lambda: cases)
    calls, run_case = [], command.run_case

    def run(index, case, *args):
        calls.append(case.name)
        if case.name == 'ends':
            raise KeyboardInterrupt
        return run_case(index, case, *args)

    monkeypatch.setattr(command, 'run_case', run)
    options = ['--suite', 'ops', '--rounds', '1', '--resume', '--out', str(tmp_path)]
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            command.main([*options, '--small'])
    command.main([*options, '--small'])
    assert calls == ['linear', 'ends', 'ends']
    rows = json.loads((tmp_path / 'ops_cpu.json').read_text())['rows']
    assert {row['case'] for row in rows} == {'linear'}
    with pytest.raises(SystemExit):
        command.main(options)
    assert 'has results with small=True, not None' in capsys.readouterr().err


def test_another_version_of_the_package(load, tmp_path, monkeypatch):
    """Its process computes with the other package."""
    (tmp_path / 'mmlinattn').mkdir()
    (tmp_path / 'mmlinattn' / '__init__.py').write_text(f"""
import time

__path__.append({str(BENCHMARKS.parent / 'mmlinattn')!r})
check_versions = lambda: None
from mmlinattn import functional

fast = functional.gaussian_product
functional.gaussian_product = lambda *args: time.sleep(0.1) or fast(*args)
""")
    command = load('command')
    monkeypatch.setattr(command, 'peak_of_variant', lambda *args: dict(bytes=2**20))
    options = ['--suite', 'ops', '--only', 'P V, stage 3', '--small', '--rounds', '2']
    options += ['--variants', 'fused', '--against', str(tmp_path)]
    command.main([*options, '--out', str(tmp_path)])
    rows = json.loads((tmp_path / 'ops_cpu_against.json').read_text())['rows']
    assert [row['variant'] for row in rows] == ['fused, before', 'fused'] * 2
    assert {row['baseline'] for row in rows} == {'fused, before'}
    before, now = (row['seconds'] for row in rows[:2])
    assert before > 0.1 > now and rows[1]['ratio'] < 1


def test_profile_is_written(load, tiny, tmp_path):
    tiny.variants.pop('broken')
    options = ['--suite', 'ops', '--profile', '--small', '--out', str(tmp_path)]
    load('command').main(options)
    profiles = json.loads((tmp_path / 'ops_cpu_profile.json').read_text())['profiles']
    assert [x['variant'] for x in profiles] == ['one', 'two'] * 2
    for profile in profiles:
        assert 0 < profile['operators']['aten::addmm'][0] < profile['seconds']
    assert '`aten::addmm`' in (tmp_path / 'ops_cpu_profile.md').read_text()
    assert (tmp_path / 'ops_cpu_profile.png').read_bytes()[1:4] == b'PNG'


# ------------------------------------------------------------------------- the plan
@pytest.mark.full
def test_plan_in_small(tmp_path):
    """A user calls it from anywhere; a second call has nothing to do."""
    command = [sys.executable, BENCHMARKS / 'run.py', *SMALL]
    command += ['--parts', 'tests', 'solvers', '--out', tmp_path]
    for out in ('solvers, float32, batch 2: done', 'written'):
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip().startswith(out)
        assert '| solvers, float32, batch 2 | 3 of 3 cases |' in done.stdout
    assert '| spectral |' in (tmp_path / 'solvers_cpu_batch2.md').read_text()
    assert '| tests | ' in (tmp_path / 'README.md').read_text()


def test_suite_goes_on_after_a_process_that_ended(load, tmp_path, monkeypatch):
    """It ends when all is measured, or time is up."""
    plan = load('plan')
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


def test_process_is_ended_at_its_limit(load, tmp_path):
    args = load('plan').parse_args([*SMALL, '--out', str(tmp_path)])
    run = load('plan').run_process
    assert run(['-c', 'import time; time.sleep(60)'], args, 0.2) is None
    assert run(['-c', 'exit(3)'], args, 60) == 3


def test_tests_that_need_a_gpu(load, tmp_path, monkeypatch):
    """It finds their files; tests that passed are not run again."""
    plan = load('plan')
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


# ------------------------------------------------------------------------- memory
def test_peak_of_a_known_allocation(load, run_python):
    """It ignores a larger peak before, and sees memory freed within."""
    if not load('memory').reset_high_water_mark():
        pytest.skip('the high-water mark can not be reset here')
    out = run_python(f"""
import sys
sys.path.insert(0, {str(BENCHMARKS)!r})
import torch
from side_by_side.memory import peak_bytes

torch.ones(200 * 2**18)
print(peak_bytes(lambda: torch.ones(64 * 2**18).sum(), torch.device('cpu')) / 2**20)
""")
    assert 63 < float(out) < 70


def test_peak_in_a_process_of_its_own(load):
    args = load('command').parse_args(['--suite', 'ops', '--small'])
    peak = load('memory').peak_of_variant
    found = peak(0, 'ours', 'forward+backward', args, BENCHMARKS.parent)
    assert found['bytes'] is None or 0 <= found['bytes'] < 2**26
    assert peak(0, 'theirs', 'forward', args, BENCHMARKS.parent)['error'] == (
        "KeyError: 'theirs'"
    )


@pytest.mark.parametrize(
    'options, message',
    [
        ('--suite none', 'argument --suite: invalid choice'),
        ('--suite ops --rounds 0', "--rounds: must be at least 1, got '0'"),
        ('--suite ops --only nothing', "--only='nothing' fits none of"),
        ('--suite ops --variants ours theirs', '--variants must be of'),
        ('--suite ops --against /nowhere', 'folder with mmlinattn'),
        ('--suite ops --resume', '--resume needs --out'),
        ('--suite ops --device gpu', "must be cpu or cuda, got 'gpu'"),
        ('--suite ops --device cuda:99', "'cuda:99', but torch finds"),
        ('--plan gpu --device cpu --limit 0', '--limit must be positive'),
    ],
)
def test_bad_input(load, capsys, options, message):
    parse_args = load('plan' if 'plan' in options else 'command').parse_args
    capsys.readouterr()  # output of libraries that are imported
    with pytest.raises(SystemExit) as stop:
        parse_args(options.split())
    line = capsys.readouterr().err
    assert stop.value.code == 2 and message in line and line.count('\n') == 1
