"""The suites and the plan of a GPU run; no measurement is asserted."""

import json
import os
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


@pytest.mark.full
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
    'suite, only',
    [('ops', 'stage 1'), pytest.param('memory', 'one', marks=pytest.mark.full)],
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


# ------------------------------------------------------------------------- arithmetic
def test_ratios_are_over_the_latest_round_of_the_baseline(load):
    summary = load('timing').summary
    found = summary({0: 2.0, 1: 6.0, 2: 4.0, 3: 8.0}, {0: 1.0, 2: 2.0})
    assert found['seconds'] == 5
    assert found['ratio'] == 3 and found['ratio_quartiles'] == (2, 4.5)
    once = summary({0: 2.0})
    assert once['seconds_quartiles'] is None and 'ratio' not in once


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
    path = tmp_path / 'times.png'
    timed = [dict(x, step='forward', seconds=1.0) for x in rows[1:]]
    load('plot').plot_times(timed[:2], path)
    assert not path.exists()
    load('plot').plot_times(timed, path)
    assert path.read_bytes()[1:4] == b'PNG'


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


def test_what_is_above_the_mark_stays(load, tmp_path):
    report, path = load('report'), tmp_path / 'page.md'
    report.write_page(path, 'old\n')
    assert path.read_text() == f'{report.MEASURED}\nold\n'
    path.write_text(f'# By hand\n\n{path.read_text()}')
    report.write_page(path, 'new\n')
    assert path.read_text() == f'# By hand\n\n{report.MEASURED}\nnew\n'


# ------------------------------------------------------------------------- the plan
def test_plan_in_small(load, tmp_path, monkeypatch):
    """A part that has its page is not measured again."""
    plan, states = load('plan'), []
    monkeypatch.setattr(plan, 'SUITES', dict(solvers=[('float32', '2')]))

    def run(arguments, args):
        states.append(arguments)
        return 'done'

    real = plan.run
    monkeypatch.setattr(plan, 'run', run)
    options = [*SMALL, '--out', str(tmp_path)]
    plan.main(options)
    (tmp_path / 'solvers_cpu_batch2.md').write_text('measured')
    plan.main(options)
    names = [Path(x[0]).name if x[0] != '-m' else x[1] for x in states]
    assert names == ['pytest', 'run.py', 'pytest']
    assert 'batch 2 | done before |' in (tmp_path / 'README.md').read_text()
    assert {'--suite', '--small'} <= {*states[1]}
    args = plan.parse_args([*options, '--limit', '1'])
    assert real(['-c', 'import time; time.sleep(60)'], args) == 'not finished in 1 s'
    assert real(['-c', 'exit(3)'], args) == 'ended with 3, log.txt'


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


def test_peak_in_a_process_of_its_own(load, monkeypatch):
    memory = load('memory')
    args = load('command').parse_args(['--suite', 'ops', '--small'])
    found = memory.peak_in_child(1, 0, 'ours', 'forward+backward', args)
    assert found['bytes'] is None or 0 <= found['bytes'] < 2**26
    args.small = False
    monkeypatch.setattr(memory, 'limit_memory', os.abort)
    assert 'was ended' in memory.peak_of_variant(0, 'ours', 'forward', args)['error']


@pytest.mark.parametrize(
    'options, message',
    [
        ('--suite ops --only nothing', "--only='nothing' fits none of"),
        ('--suite ops --variants ours theirs', '--variants must be of'),
        ('--suite ops --device gpu', "must be cpu or cuda, got 'gpu'"),
    ],
)
def test_bad_input(load, capsys, options, message):
    parse_args = load('command').parse_args
    capsys.readouterr()  # output of libraries that are imported
    with pytest.raises(SystemExit) as stop:
        parse_args(options.split())
    line = capsys.readouterr().err
    assert stop.value.code == 2 and message in line and line.count('\n') == 1
