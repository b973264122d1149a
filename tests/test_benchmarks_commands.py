"""The commands beside the suites."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from mmengine.registry import MODELS

BENCHMARKS = Path(__file__).resolve().parents[1] / 'benchmarks'
ARCH = dict(embed_dims=[16, 32, 64, 64], depths=[1, 1, 1, 1], num_heads=[1, 2, 4, 4])


@pytest.fixture
def load(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module


def record(memory, new=(0,), **changes):
    """Lines of a record with these values of memory."""
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
        (record([100] * 45 + [90] * 5), -0.1, True),
        # a new process warms up again
        (record([50] * 5 + [100] * 20 + [50] * 5 + [101] * 20, (0, 25)), 0.01, True),
        (record([100] * 20, loss=None), 0, False),
    ],
)
def test_growth_is_seen(load, lines, growth, kept):
    long_run = load('long_run')
    found = long_run.summarize(lines)
    assert found['growth'] == pytest.approx(growth, abs=0.005)
    assert long_run.holds(found) == kept


def test_the_hook_goes_on_with_a_record(load, tmp_path):
    long_run = load('long_run')
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


def test_report_of_what_is_there(load, tmp_path, capsys):
    lines = record([2**20 * 100] * 30, before_release=2**20 * 120)
    (tmp_path / 'fixed').mkdir()
    (tmp_path / 'fixed' / 'long_run.jsonl').write_text(
        '\n'.join(map(json.dumps, lines))
    )
    options = ['--report-only', '--work-dir', str(tmp_path)]
    with pytest.raises(SystemExit) as stop:
        load('long_run').main([*options, '--out', str(tmp_path / 'report.json')])
    assert stop.value.code == 0
    assert 'fixed sizes, 600 iterations: 100 MiB' in capsys.readouterr().out
    assert json.loads((tmp_path / 'report.json').read_text())['fixed'] == lines
    assert (tmp_path / 'report.png').stat().st_size < 100_000


@pytest.mark.full
@pytest.mark.modern
@pytest.mark.parametrize(
    'command',
    [
        ['long_run.py', '--iterations', '200', '--sizes', 'random', '--work-dir', '.'],
        ['amp_training.py', '--steps', '20', '--size', '64'],
    ],
    ids=lambda command: command[0],
)
def test_trainings(tmp_path, command):
    pytest.importorskip('mmdet')
    command = [sys.executable, BENCHMARKS / command[0], *command[1:]]
    done = subprocess.run([*command, '--out', 'report.json'], cwd=tmp_path)
    assert done.returncode in (0, 1)  # too short to be judged
    report = json.loads((tmp_path / 'report.json').read_text())
    if 'summaries' in report:
        assert report['summaries']['random']['finite']
        assert [x['iter'] for x in report['random']] == list(range(20, 201, 20))


def test_forms_of_a_backbone(load, tmp_path):
    pytest.importorskip('onnxruntime')
    int8 = load('int8')
    backbone = MODELS.build(dict(type='mmlinattn.SOFTPlusPlus', arch=ARCH)).eval()
    forms = int8.forms_of(backbone, tmp_path, (64, 64))
    for name, (form, size) in forms.items():
        compared = int8.Compared(form, backbone)
        with torch.no_grad():
            compared(torch.randn(1, 3, 64, 96))
        errors = compared.errors()
        assert len(errors) == 4 and max(errors) < 0.5
        assert (max(errors) > 1e-4) == ('int8' in name)
        if 'int8' in name:
            assert size < forms[name.replace('int8', 'float32')][1]
    assert int8.costs_of(forms, (64, 64), rounds=2).keys() == forms.keys()


def test_errors_are_of_all_images(load):
    compared = load('int8').Compared(lambda x: (x, 1.5 * x), lambda x: (x, x))
    for value in (1, 3):
        compared(torch.full((1, 2), float(value)))
    assert compared.errors() == pytest.approx([0, 0.5])


def test_table_of_errors(load, monkeypatch, tmp_path):
    precision = load('precision')
    small = dict(type='SOFTPlusPlus', arch=ARCH)
    monkeypatch.setattr(precision, 'BACKBONES', dict(small=small))
    precision.main(['--size', '32', '32', '--out', str(tmp_path / 'errors')])
    rows = json.loads((tmp_path / 'errors.json').read_text())['rows']
    errors = {(x['mode'], x['dtype']): x['outputs'] for x in rows}
    assert 0 < errors['training', 'float32'] < 1e-3 < errors['training', 'bfloat16']
    assert '| small | training |' in (tmp_path / 'errors.md').read_text()


@pytest.mark.parametrize(
    'name, options, message',
    [
        ('int8', ['config.py', '--rounds', '0'], '--rounds must be at least 1, got 0'),
        ('int8', ['nowhere.py'], 'nowhere.py'),
        ('long_run', ['--iterations', '9'], '--iterations must be at least 200, got 9'),
        ('long_run', ['--report-only', '--work-dir', 'x'], 'it has no record'),
        ('amp_training', ['--steps', '5'], 'a positive multiple of 20, got 5'),
        ('kill_and_resume', ['--runs', '0'], '--runs must be at least 1, got 0'),
        ('precision', ['--size', '9', '64'], '--size must be at least 32 32'),
    ],
)
def test_bad_input(load, capsys, name, options, message):
    with pytest.raises(SystemExit) as stop:
        load(name).main(options)
    line = capsys.readouterr().err
    assert stop.value.code == 2 and message in line and line.count('\n') == 1


def test_models_of_other_libraries_run_or_say_why(load):
    """In a table by library; failures of a compiled mmcv are no fault of ours."""
    models = load('openmmlab_models')
    folder = Path(import_module('mmdet').__file__).parent / '.mim/configs/retinanet'
    retinanet = models.Config.fromfile(folder / 'retinanet_r18_fpn_1x_coco.py').model
    models.init_default_scope('mmdet')
    found = models.run_apart(100, 'mmdet', retinanet, None)
    assert found['operators'] == ['nms'], found
    broken = models.ConfigDict(type='NoDetector')
    no_detector = models.run_apart(100, 'mmdet', broken, None)
    assert no_detector['step'] == 'build'
    text = 'NotImplementedError: rotated is not among the operators of mmlinattn'
    needs = dict(step='train', error=text, operators=[])
    names = dict(a=['a', 'b'], c=['c'], d=['d'], e=['e'])
    results = dict(a=found, c=no_detector, d=needs, e=dict(no_detector, error='x|y'))
    there = dict(mmdet=dict(results=dict(c=no_detector, e=found)))
    lines = models.page(dict(mmdet=dict(names=names, results=results)), there)
    assert '\n| mmdet | 5 | 2 | 1 | 1 | 1 |\n' in lines
    assert '\n| mmdet: e | fails | build | x/y |\n' in lines
    assert '\n| mmdet: c | fails with both | build |' in lines
    assert f'\n| mmdet: d | needs rotated | train | {text} |\n' in lines
