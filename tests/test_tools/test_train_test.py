"""Arguments of tools/train.py, tools/test.py and their launchers, up to the start of a
run."""

import os
import subprocess
import sys
from argparse import Namespace
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.runner import Runner

from mmlinattn_tools import runs

pytestmark = pytest.mark.modern

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / 'tools'


@pytest.fixture
def run(monkeypatch, tmp_path, load_tool):
    """Runs a tool in an empty folder, and returns the config it would train
    or test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('LOCAL_RANK', '0')
    # its parts are no real ones; see test_bad_input.py
    monkeypatch.setattr(runs, 'preflight', lambda *args: None)

    def call(name, *args, train=lambda: None, device='cpu'):
        configs = []
        done = Namespace(train=train, test=lambda: None)
        monkeypatch.setattr(Runner, 'from_cfg', lambda cfg: configs.append(cfg) or done)
        monkeypatch.setattr(sys, 'argv', [f'{name}.py', *map(str, args)])
        tool = load_tool(f'{name}.py')
        monkeypatch.setattr(tool, 'get_device', lambda: device, raising=False)
        monkeypatch.setattr(tool, 'summary', lambda *args: [], raising=False)
        tool.main()
        return configs[0]

    return call


@pytest.fixture
def config(tmp_path):
    """A config that needs no data."""
    path = tmp_path / 'mine.py'
    path.write_text("""
default_scope = 'mmdet'
model = dict(type='Model')
optim_wrapper = dict(type='OptimWrapper')
auto_scale_lr = dict(enable=False, base_batch_size=16)
default_hooks = dict(visualization=dict(type='DetVisualizationHook'))
visualizer = dict(type='Visualizer')
test_dataloader = dict(dataset=dict(pipeline=[]))
test_evaluator = dict(type='CocoMetric')
load_from = None
resume = False
""")
    return path


@pytest.fixture
def checkpoint(tmp_path):
    path = tmp_path / 'epoch_1.pth'
    torch.save(dict(state_dict={}), path)
    return path


def test_train_options(run, config, checkpoint):
    cfg = run('train', config)
    assert cfg.work_dir == os.path.join('work_dirs', 'mine') and cfg.launcher == 'none'
    assert not cfg.resume and cfg.load_from is None
    args = ['--work-dir', 'here', '--auto-scale-lr', '--launcher', 'pytorch']
    cfg = run('train', config, '--resume', checkpoint, *args)
    assert cfg.work_dir == 'here' and cfg.launcher == 'pytorch'
    assert cfg.auto_scale_lr.enable
    assert cfg.resume and cfg.load_from == str(checkpoint)


@pytest.mark.parametrize('by_config', [False, True])
def test_mixed_precision(run, config, by_config):
    amp = 'optim_wrapper.type=AmpOptimWrapper'
    args = ['--cfg-options', amp] if by_config else ['--amp', '--cfg-options']
    wrapper = run('train', config, *args, 'model.width=3', device='cuda').optim_wrapper
    assert wrapper.type in amp
    more = 'model.width=3', 'optim_wrapper.dtype=bfloat16'
    assert run('train', config, *args, *more).optim_wrapper.type == 'OptimWrapper'


@pytest.mark.parametrize('args', [['--resume'], ['--cfg-options', 'resume=True']])
def test_train_resume_from_newest(run, config, checkpoint, capsys, args):
    work = checkpoint.parent / 'work_dirs' / 'mine'
    work.mkdir(parents=True)
    newest = work / 'epoch_2.pth'
    for path in (work / 'epoch_1.pth', newest):
        path.write_bytes(checkpoint.read_bytes())
    cfg = run('train', config, *args)
    assert cfg.resume and Path(cfg.load_from).samefile(newest)
    assert capsys.readouterr().err.endswith('epoch_2.pth\n')


def test_train_resume_from_nothing(run, config, checkpoint, capsys):
    cfg = run('train', config, '--resume', '--cfg-options', f'load_from={checkpoint}')
    assert not cfg.resume and cfg.load_from == str(checkpoint)
    assert 'finds no checkpoint in work_dirs/mine' in capsys.readouterr().err


def test_no_network(run, config, error_of):
    def train():
        raise ConnectionError("pretrained='https://host/x.pth' cannot be downloaded")

    line = error_of(run, 'train', config, train=train)
    assert line.startswith("train.py: error: pretrained='https://host/x.pth'")


@pytest.mark.parametrize(
    'hook, folder',
    [
        ('DetVisualizationHook', 'default_hooks.visualization.test_out_dir'),
        ('mmseg.SegVisualizationHook', 'visualizer.save_dir'),
        ('VisualizationHook', 'default_hooks.visualization.out_dir'),
    ],
)
def test_drawing(run, config, checkpoint, tmp_path, hook, folder):
    option = f'default_hooks.visualization.type={hook}'
    args = '--show-dir', 'pictures', '--cfg-options', option
    cfg = run('test', config, checkpoint, *args)
    drawing = cfg.default_hooks.visualization
    assert drawing.get('draw') or drawing.get('enable')
    for key in folder.split('.'):
        cfg = cfg[key]
    assert cfg == str(tmp_path / 'pictures')


def test_out(run, config, checkpoint):
    metrics = run('test', config, checkpoint, '--out', 'x.pkl').test_evaluator
    assert [x['type'] for x in metrics] == ['CocoMetric', 'mmdet.DumpDetResults']
    args = config, checkpoint, '--out', 'x', '--cfg-options'
    cfg = run('test', *args, 'default_scope=mmseg')
    assert cfg.test_evaluator.output_dir == 'x'


@pytest.mark.parametrize(
    'script, args, program, expected',
    [
        ('dist_train', 'c.py 2', 'python', '=2 {}/train.py c.py --launcher pytorch'),
        ('dist_test', 'c.py x 2', 'python', '=2 {}/test.py c.py x --launcher pytorch'),
        ('slurm_train', 'p j c.py', 'srun', '-u {}/train.py c.py --launcher slurm'),
        ('slurm_test', 'p j c.py x', 'srun', '-u {}/test.py c.py x --launcher slurm'),
    ],
)
def test_launchers(tmp_path, monkeypatch, script, args, program, expected):
    fake = tmp_path / program
    fake.write_text('#!/bin/sh\necho "$@"\n')
    fake.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for name in ('c.py', 'x'):
        Path(name).touch()
    env = dict(os.environ, PATH=f'{tmp_path}:{os.environ["PATH"]}')
    run = partial(subprocess.run, capture_output=True, text=True, env=env)
    done = run(['bash', TOOLS / f'{script}.sh', *args.split(), '--more'], check=True)
    assert done.stdout.strip().endswith(f'{expected.format(TOOLS)} --more')
    done = run(['bash', TOOLS / f'{script}.sh'])
    assert done.returncode == 2 and done.stderr.startswith('usage: ')


@pytest.mark.parametrize(
    'script, args, message',
    [
        ('dist_train.sh', ['no.py', '2'], "config='no.py': there is no such file"),
        ('dist_test.sh', [__file__, 'x', '2'], "checkpoint='x': there is no such file"),
        ('dist_test.sh', ['c.py', 'x', '0'], "GPUS must be a positive number, got '0'"),
    ],
)
def test_launchers_want_files_and_a_number(script, args, message):
    command = ['bash', TOOLS / script, *args]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == ''
    assert done.stderr == f'{script}: error: {message}\n'


@pytest.mark.parametrize(
    'learned, message',
    [(['cat', 'dog'], ''), (['dog', 'cat'], "'dog' in place of 'cat")],
)
def test_classes_of_a_checkpoint(load_tool, monkeypatch, learned, message):
    tool, warned = load_tool('test.py'), []
    content = dict(meta=dict(dataset_meta=dict(classes=learned)))
    found = Namespace(whole=True)
    monkeypatch.setattr(tool.runs, 'compare', lambda *_: (content, found))
    monkeypatch.setattr(tool.runs, 'warn', warned.append)
    data = dict(type='BaseDataset', metainfo=dict(classes=('cat', 'dog')), pipeline=[])
    cfg = Config(dict(test_dataloader=dict(dataset=data)))
    with pytest.raises(ValueError, match=message) if message else nullcontext():
        args = Namespace(checkpoint='x.pth', allow_mismatch=False)
        tool.check_weights(cfg, args, None)
    args = Namespace(checkpoint='x.pth', allow_mismatch=True)
    tool.check_weights(cfg, args, None)
    assert len(warned) == bool(message)
