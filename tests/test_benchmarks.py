"""The benchmarks' machinery; what they measure is not asserted."""

import json
import subprocess
import sys
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from mmlinattn import functional
from mmlinattn.analysis import count_flops

BENCHMARKS = Path(__file__).resolve().parents[1] / 'benchmarks'
CPU = torch.device('cpu')


@pytest.fixture
def load(monkeypatch):
    """Imports one of the benchmarks' modules, whose package is beside the command."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return lambda name: import_module(f'side_by_side.{name}')


@pytest.fixture
def tiny(load, monkeypatch):
    """A suite of one case, measured without processes of its own."""
    cases, registry, run = map(load, ('cases', 'registry', 'command'))
    case = cases.Case(
        'linear',
        {
            'one': partial(torch.nn.Linear, 4, 4),
            'two': partial(torch.nn.Linear, 4, 8),
            'broken': partial(torch.nn.Linear, 4, 8),
        },
        (1, 3, 6, 4),
        small=(1, 3, 2, 4),
        paper={('two', 'two'): (2, 3)},
    )

    def peak(index, variant, *args):
        if variant == 'broken':
            return dict(error='out of memory')
        return dict(bytes=dict(one=2, two=6)[variant] * 2**20)

    monkeypatch.setitem(registry.SUITES, 'ops', lambda: [case])
    monkeypatch.setattr(run, 'peak_of_variant', peak)
    return case


def test_stages_are_those_of_the_model(load):
    registry, models = load('registry'), load('models')
    with torch.device('meta'):
        soft = models.backbone(type='SOFT', arch='tiny')()
    attns = [stage.blocks[0].attn for stage in soft.stages[:3]]
    assert [(a.sampler.ratio, a.num_heads) for a in attns] == [
        stage[1:] for stage in registry.STAGES
    ]
    assert {a.head_dims for a in attns} == {registry.HEAD_DIMS}
    assert registry.stage_map((800, 1344), 0) == (1, 64, 200, 336)


@pytest.mark.parametrize(
    'suite',
    [
        'ops',
        'solvers',
        'backbones',
        'detectors',
        'attentions',
        'memory',
        'large',
        'antioversmoothing',
    ],
)
def test_every_variant_can_be_built(load, suite):
    built = set()
    for case in load('registry').SUITES[suite]():
        assert set(case.rounds) <= set(case.variants)
        assert {x for pair in case.paper for x in pair} <= set(case.variants)
        for name, build in case.variants.items():
            if (case.name, name) in built:
                continue
            # mmdet's models are made of values
            theirs = suite == 'detectors' or 'mmdet' in name
            with torch.device('cpu' if theirs else 'meta'):
                assert any(p.numel() for p in build().parameters()) or suite in (
                    'ops',
                    'solvers',
                )
            built.add((case.name, name))
    assert built


@pytest.mark.parametrize('suite', ['ops', 'solvers', 'memory'])
def test_steps_of_every_variant(load, suite):
    """On small inputs; whole models have the smoke run of --small."""
    timing = load('timing')
    cases = load('registry').SUITES[suite]()
    for case in cases[:1] + cases[-4:]:
        inputs = case.inputs(case.small, torch.float32)
        for name, build in case.variants.items():
            if '12 layers' in case.name and 'softmax' not in name:
                continue
            module = build()
            timing.forward(module, inputs)
            timing.forward_backward(module, inputs)
            leaves = [*module.parameters(), *inputs]
            grads = [
                x.grad
                for x in leaves
                if isinstance(x, torch.Tensor) and x.requires_grad
            ]
            assert all(grad.isfinite().all() for grad in grads), (case, name)
            timing.drop_gradients(leaves)
            assert leaves[0].grad is None


def test_scaling_vectors_are_drawn(load):
    models = load('models')
    build = models.backbone(
        type='VisionTransformer',
        arch=dict(embed_dims=8, num_layers=1, num_heads=2),
        attn_scale=True,
        feat_scale=True,
    )
    assert not build().blocks[0].attn.omega.any()
    block = models.scaled(build)().blocks[0]
    assert block.attn.omega.all() and block.feat_scale.dc_scale.all()


def test_inputs_are_as_smooth_as_photographs(load):
    """Of photographs' 1,050 eigenvalues at most some hundred matter."""
    cases = load('cases')
    _, landmarks, _ = cases.softmax_free_inputs(
        (1, 32, 50, 84), torch.float64, num_heads=1, ratio=2
    )
    a = functional.gaussian_kernel(landmarks)[0, 0].detach()
    eigenvalues = torch.linalg.eigvalsh(a)
    assert len(a) == 1050
    assert 10 < (eigenvalues > 0.003 * a.sum(-1).max()).sum() < 160


def converged_inputs():
    """Landmarks far enough apart for Newton to converge."""
    return [
        (scale * torch.randn(2, 2, n, 8, dtype=torch.float64)).requires_grad_()
        for n, scale in ((20, 1), (6, 1.5), (20, 1))
    ]


@pytest.mark.parametrize('name', ['explicit_attention', 'analytic_attention'])
def test_explicit_forms_are_our_operator(load, name):
    explicit = getattr(load('baselines'), name)
    inputs = converged_inputs()
    out = functional.softmax_free_attention(*inputs)
    weight = torch.randn_like(out)
    wanted = torch.autograd.grad((weight * out).sum(), inputs)
    found = explicit(*inputs)
    torch.testing.assert_close(found, out)
    grads = torch.autograd.grad((weight * found).sum(), inputs)
    torch.testing.assert_close(grads, wanted, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize('name', ['explicit_attention', 'analytic_attention'])
def test_explicit_forms_truncate_as_ours(load, name):
    """Where Newton is far from having converged."""
    cases = load('cases')
    inputs = cases.softmax_free_inputs(
        (1, 32, 48, 64), torch.float64, num_heads=1, ratio=4
    )
    with torch.no_grad():
        torch.testing.assert_close(
            getattr(load('baselines'), name)(*inputs),
            functional.softmax_free_attention(*inputs),
            rtol=1e-5,
            atol=1e-5,
        )


def test_official_form_in_a_model(load):
    models, baselines = load('models'), load('baselines')
    small = dict(embed_dims=[8, 16], depths=[1, 1], num_heads=[1, 2])
    cfg = dict(
        type='SOFT',
        arch=small,
        attn_norm=True,
        sampling_ratios=(4, 1),
        kernel_sizes=(3, 3),
    )
    ours = models.backbone(**cfg)()
    explicit = models.backbone(**cfg, context=baselines.explicit_in_models)()
    explicit.module.load_state_dict(ours.state_dict())
    x = torch.rand(1, 3, 64, 64)
    torch.testing.assert_close(explicit.eval()(x), ours.eval()(x), rtol=1e-3, atol=1e-4)
    kinds = [count_flops(m, x).by_kind() for m in (ours, explicit)]
    assert kinds[0]['pseudo_inverse'] > 0 == kinds[1]['pseudo_inverse']
    cfg['attn_norm'] = False
    with pytest.raises(ValueError, match='normalize=False'):
        models.backbone(**cfg, context=baselines.explicit_in_models)()(x)


class Names(TorchDispatchMode):
    """Collects the names of operations."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names = getattr(self, 'names', '') + func.overloadpacket.__name__
        return func(*args, **(kwargs or {}))


def test_unfused_attention_is_written_out(load):
    cases = load('cases')
    attend = torch.nn.functional.scaled_dot_product_attention
    q = torch.rand(1, 2, 10, 4, requires_grad=True)
    with Names() as fused:
        attend(q, q, q)
    with Names() as written_out, cases.unfused():
        attend(q, q, q)
    assert 'scaled_dot_product' in fused.names
    assert 'scaled_dot_product' not in written_out.names
    assert 'softmax' in written_out.names


def test_variants_take_turns(load):
    timing = load('timing')
    calls = []
    runs = {name: (partial(calls.append, name), lambda: None) for name in 'abc'}
    seconds = timing.measure(runs, dict(a=4, b=4, c=2))
    assert ''.join(calls) == 'abc' + 'ba' + 'cab' + 'ba'
    assert {name: list(found) for name, found in seconds.items()} == dict(
        a=[0, 1, 2, 3], b=[0, 1, 2, 3], c=[0, 2]
    )


@pytest.mark.parametrize('rounds', range(1, 8))
def test_rounds_of_slow_variants_are_spread(load, rounds):
    taken = [i for i in range(7) if load('timing').takes_part(i, rounds, 7)]
    assert len(taken) == rounds and taken[0] == 0
    steps = [b - a for a, b in zip(taken, taken[1:])]
    assert not steps or max(steps) - min(steps) <= 1


def test_ratios_are_over_the_latest_round_of_the_baseline(load):
    summary = load('timing').summary
    found = summary({0: 2.0, 1: 6.0, 2: 4.0, 3: 8.0}, {0: 1.0, 2: 2.0})
    assert found['seconds'] == 5
    assert found['ratio'] == 3 and found['ratio_quartiles'] == (2, 4.5)
    once = summary({0: 2.0})
    assert once['seconds_quartiles'] is None and 'ratio' not in once


def test_results_are_written(load, tiny, tmp_path, capsys):
    load('command').main(
        ['--suite', 'ops', '--rounds', '2', '--small', '--out', str(tmp_path)]
    )
    assert 'broken is left out: out of memory' in capsys.readouterr().out
    lines = (tmp_path / 'ops_cpu.json').read_text()
    record = json.loads(lines)
    assert lines.count('\n') == len(record['rows']) + 7  # a row is a line
    row = next(
        row
        for row in record['rows']
        if row['variant'] == row['baseline'] == 'one'
        and row['step'] == 'forward+backward'
    )
    assert row['ratio'] == row['memory_ratio'] == 1 and 0 < row['gemm_share'] < 1
    # the paper's comparison has a row of its own
    extra = [row for row in record['rows'] if 'paper' in row]
    assert [row['baseline'] for row in extra] == ['two', 'two']
    text = (tmp_path / 'ops_cpu.md').read_text()
    assert '| linear | 1×3×2×4 | forward | two | two |' in text
    assert '2-3x' in text and 'torch' in text and 'GFLOP/s' in text
    assert (tmp_path / 'ops_cpu.png').read_bytes()[1:4] == b'PNG'


def test_resume(load, tiny, tmp_path, monkeypatch, capsys):
    """What is done is kept; what ended its process is tried twice."""
    command, registry = load('command'), load('registry')
    cases = [tiny, tiny._replace(name='ends')]
    monkeypatch.setitem(registry.SUITES, 'ops', lambda: cases)
    calls, run_case = [], command.run_case

    def run(index, case, *args):
        calls.append(case.name)
        if case.name == 'ends':
            raise KeyboardInterrupt
        return run_case(index, case, *args)

    monkeypatch.setattr(command, 'run_case', run)
    options = ['--suite', 'ops', '--rounds', '1', '--small', '--resume', '--out']
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            command.main([*options, str(tmp_path)])
    command.main([*options, str(tmp_path)])
    assert calls == ['linear', 'ends', 'ends']
    rows = json.loads((tmp_path / 'ops_cpu.json').read_text())['rows']
    assert {row['case'] for row in rows} == {'linear'}
    options.remove('--small')
    capsys.readouterr()
    with pytest.raises(SystemExit):
        command.main([*options, str(tmp_path)])
    assert 'has results with small=True, not None' in capsys.readouterr().err


def test_equal_cases_are_measured_once(load):
    command = load('command')
    args = command.parse_args(['--suite', 'memory', '--small'])
    assert [i for i, _ in command.selected(args)] == [0, 8]


def test_only_some_variants(load, tiny):
    """With the first one of them as the baseline."""
    command = load('command')
    args = command.parse_args(['--suite', 'ops', '--variants', 'two', '--batch', '3'])
    ((index, case),) = command.selected(args)
    assert index == 0 and list(case.variants) == ['two'] and case.shape[0] == 3
    assert command.pairs(case, args) == [('two', 'two')]


def test_another_version_of_the_package(load, tmp_path, monkeypatch):
    """Its process computes with the other package."""
    (tmp_path / 'mmlinattn').mkdir()
    (tmp_path / 'mmlinattn' / '__init__.py').write_text(f"""
import time

__path__.append({str(BENCHMARKS.parent / 'mmlinattn')!r})


def check_versions():
    pass


from mmlinattn import functional

fast = functional.gaussian_product
functional.gaussian_product = lambda *args: time.sleep(0.1) or fast(*args)
""")
    command = load('command')
    packages = []
    monkeypatch.setattr(
        command,
        'peak_of_variant',
        lambda *args: packages.append(args[4:]) or dict(bytes=2**20),
    )
    command.main(
        ['--suite', 'ops', '--only', 'P V, stage 3', '--small', '--rounds', '2']
        + ['--variants', 'fused', '--against', str(tmp_path), '--out', str(tmp_path)]
    )
    assert packages == [(), (tmp_path,)] * 2
    rows = json.loads((tmp_path / 'ops_cpu_against.json').read_text())['rows']
    assert [row['variant'] for row in rows] == ['fused, before', 'fused'] * 2
    assert {row['baseline'] for row in rows} == {'fused, before'}
    before, now = (row['seconds'] for row in rows[:2])
    assert before > 0.1 > now and rows[1]['ratio'] < 1


def test_profile_is_written(load, tiny, tmp_path):
    tiny.variants.pop('broken')
    load('command').main(
        ['--suite', 'ops', '--profile', '--small', '--out', str(tmp_path)]
    )
    profiles = json.loads((tmp_path / 'ops_cpu_profile.json').read_text())['profiles']
    assert [(x['variant'], x['step']) for x in profiles] == [
        (name, step)
        for step in ('forward', 'forward+backward')
        for name in ('one', 'two')
    ]
    for profile in profiles:
        seconds = {name: own for name, (own, _) in profile['operators'].items()}
        assert 0 < seconds['aten::addmm'] < profile['seconds']
    text = (tmp_path / 'ops_cpu_profile.md').read_text()
    assert '`aten::addmm`' in text and 'two, forward+backward' in text
    assert (tmp_path / 'ops_cpu_profile.png').read_bytes()[1:4] == b'PNG'


def test_shares_of_operators(load):
    operators = load('operators')
    profiles = [
        dict(operators=dict(a=(8.0, 2), b=(1.9, 1), c=(0.1, 7))),
        dict(operators=dict(c=(0.5, 1), b=(0.5, 1))),
    ]
    first, second = operators.shares(profiles)
    assert list(first) == ['a', 'b', 'c', 'others']
    assert first == dict(a=0.8, b=0.19, c=0.01, others=pytest.approx(0))
    assert second == dict(a=0, b=0.5, c=0.5, others=0)
    # too small in every step
    del profiles[1]
    assert operators.shares(profiles) == [
        dict(a=0.8, b=0.19, others=pytest.approx(0.01))
    ]


def test_baseline_can_be_chosen(load, tiny, tmp_path, monkeypatch):
    run = load('command')
    monkeypatch.setattr(run, 'matmul_rate', lambda *args: 1.0)
    run.main(
        [
            '--suite',
            'ops',
            '--rounds',
            '1',
            '--baseline',
            'two',
            '--dtype',
            'bfloat16',
            '--batch',
            '2',
            '--out',
            str(tmp_path),
        ]
    )
    rows = json.loads((tmp_path / 'ops_cpu_bfloat16_batch2.json').read_text())['rows']
    assert {row['baseline'] for row in rows} == {'two'}
    assert {tuple(row['shape']) for row in rows} == {(2, *tiny.shape[1:])}
    ratios = {row['variant']: row.get('memory_ratio') for row in rows}
    assert ratios == dict(one=pytest.approx(1 / 3), two=1, broken=None)


def test_plot_of_many_variants(load, tmp_path):
    rows = [
        dict(
            case='x',
            shape=(1, 8, 10, 10),
            step='forward',
            variant=f'{i}',
            baseline='0',
            ratio=i + 1,
        )
        for i in range(25)
    ]
    load('plot').plot_ratios(rows, tmp_path / 'many.png')
    assert (tmp_path / 'many.png').read_bytes()[1:4] == b'PNG'


def test_growth_of_memory(load, tmp_path):
    report, plot = load('report'), load('plot')
    rows = [
        dict(
            case='x',
            shape=(1, 8, 10, n),
            step='forward',
            variant=name,
            **(dict(bytes=n**power * 2**20) if name == 'fits' or n == 1 else {}),
        )
        for n in (1, 2, 4)
        for name, power in (('fits', 1.5), ('too large', 1))
    ]
    curves = {curve['variant']: curve for curve in report.growth(rows)}
    assert curves['fits']['tokens'] == [10, 20, 40]
    assert curves['fits']['exponent'] == pytest.approx(1.5)
    assert curves['too large']['exponent'] is None
    text = report.growth_tables(report.growth(rows))
    assert '| fits | 1.0 | 2.8 | 8.0 | 1.500 |' in text
    assert '| too large | 1.0 | - | - | - |' in text
    plot.plot_growth(rows, tmp_path / 'growth.png')
    assert (tmp_path / 'growth.png').stat().st_size < 300_000


def test_peak_of_a_known_allocation(load, run_python):
    """Forgets a larger peak before, and sees what is freed within."""
    if not load('memory').reset_high_water_mark():
        pytest.skip('the high-water mark can not be reset here')
    out = run_python(f"""
import sys
sys.path.insert(0, {str(BENCHMARKS)!r})
import resource
import torch
from side_by_side.memory import limit_memory, peak_bytes

torch.ones(200 * 2**18)
print(peak_bytes(lambda: torch.ones(64 * 2**18).sum(), torch.device('cpu')) / 2**20)
limit_memory()
print(resource.getrlimit(resource.RLIMIT_DATA)[0])
""").split()
    assert 63 < float(out[0]) < 70
    assert 0 < int(out[1]) < 2**60


def test_peak_in_a_process_of_its_own(load):
    args = load('command').parse_args(['--suite', 'ops', '--small'])
    memory = load('memory')
    for package in (None, BENCHMARKS.parent):  # in this one, and in one of its own
        found = memory.peak_of_variant(0, 'ours', 'forward+backward', args, package)
        assert found['bytes'] is None or 0 <= found['bytes'] < 2**26


@pytest.mark.parametrize(
    'code, stderr, says',
    [
        (1, 'Traceback\nKeyError: 3\n', 'KeyError: 3'),
        (1, '', 'unknown error'),
        (-9, '', 'signal 9; out of memory?'),
    ],
)
def test_process_that_fails(load, monkeypatch, code, stderr, says):
    memory = load('memory')
    done = subprocess.CompletedProcess([], code, stderr=stderr)
    monkeypatch.setattr(memory.subprocess, 'run', lambda *args, **kwargs: done)
    args = load('command').parse_args(['--suite', 'ops'])
    assert says in memory.peak_of_variant(0, 'ours', 'forward', args)['error']


@pytest.mark.parametrize(
    'error, says',
    [
        (ImportError('No module named mmdet'), 'No module named mmdet'),
        (RuntimeError('CUDA out of memory. Tried to allocate 9 GiB'), 'out of memory'),
        (MemoryError(), 'MemoryError'),
    ],
)
def test_variant_that_can_not_run(load, monkeypatch, error, says):
    memory = load('memory')

    def measure(*args):
        raise error

    monkeypatch.setattr(memory, 'measure', measure)
    args = load('command').parse_args(['--suite', 'ops', '--small'])
    assert memory.peak_of_variant(0, 'ours', 'forward', args) == dict(error=says)


def test_references_of_timm_where_mmdet_is_missing(load, monkeypatch):
    models = load('models')
    monkeypatch.setattr(models, 'find_spec', lambda name: None)
    assert list(models.references((64, 64))) == ['PVTv2-B1 (timm)', 'Swin-T (timm)']
    for build in models.references((64, 64)).values():
        assert len(build().eval()(torch.rand(1, 3, 64, 64))) == 4


@pytest.mark.parametrize(
    'options, message',
    [
        (['--suite', 'none'], 'invalid choice'),
        (['--suite', 'ops', '--rounds', '0'], '--rounds must be at'),
        (['--suite', 'ops', '--threads', '0'], '--threads: must be'),
        (['--suite', 'ops', '--batch', '-1'], '--batch must be at'),
        (['--suite', 'ops', '--only', 'nothing'], "--only='nothing' fits none of"),
        (['--suite', 'ops', '--baseline', 'theirs'], '--baseline must be of'),
        (['--suite', 'ops', '--variants', 'ours', 'theirs'], '--variants must be of'),
        (['--suite', 'ops', '--against', '/nowhere'], 'folder with mmlinattn'),
        (['--suite', 'ops', '--resume'], '--resume needs --out'),
        (['--suite', 'ops', '--device', 'meta'], 'must be cpu or cuda'),
        (['--suite', 'ops', '--device', 'gpu'], "must be cpu or cuda, got 'gpu'"),
        (['--suite', 'ops', '--device', 'cuda:99'], "'cuda:99', but torch finds"),
        (['--suite', 'ops', '--device', 'cpu:1'], "'cpu:1', but torch finds 1"),
        (['--suite', 'ops', '--dtype', 'int8'], 'invalid choice'),
        (['--suite'], 'expected one argument'),
        ([], 'required: --suite'),
        (['--suite', 'ops', '--round', '1'], 'unrecognized arguments: --round'),
        (['--suite', 'ops', '--rounds', 'two'], "invalid int value: 'two'"),
        (['--suite', 'ops', '--out', __file__], 'is a file, not a folder'),
        (['--suite', 'ops', '--out', f'{__file__}/x'], 'can not be written'),
    ],
)
def test_bad_input(load, capsys, options, message):
    with pytest.raises(SystemExit) as stop:
        load('command').parse_args(options)
    line = capsys.readouterr().err
    assert stop.value.code == 2 and message in line and line.count('\n') == 1


def test_command():
    """The documented way to call it, from anywhere."""
    done = subprocess.run(
        [sys.executable, BENCHMARKS / 'run.py', '--suite', 'none'],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and done.stdout == ''
    assert done.stderr.startswith(
        "run.py: error: argument --suite: invalid choice: 'no"
    )


def test_help(load, capsys):
    with pytest.raises(SystemExit) as stop:
        load('command').parse_args(['--help'])
    assert stop.value.code == 0 and 'examples:' in capsys.readouterr().out
