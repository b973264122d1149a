"""What the libraries' own tools/train.py and tools/test.py do, ours do, or say what to
type."""

import re
import sys
from argparse import Namespace
from importlib import import_module
from pathlib import Path

import pytest
from loading import ROOT, load_module
from mmengine.config import Config
from mmengine.utils import get_installed_path

from mmlinattn.cli.run_arguments import REPLACED, run_parser
from mmlinattn.runs.library_options import (
    set_loader_defaults,
    use_test_time_augmentation,
)
from mmlinattn.utils import load_config

pytestmark = pytest.mark.openmmlab

LIBRARIES = ('mmdet', 'mmseg', 'mmpretrain')
CLASSIFIER = 'mmpretrain::resnet/resnet18_8xb32_in1k.py'
TOOLS = pytest.mark.parametrize('tool', ('train', 'test'))
# of OpenMMLab's own clusters
WITHOUT_USE = {'--ceph'}


def script(library, tool):
    """The path of a library's own script."""
    return Path(get_installed_path(library), '.mim', 'tools', f'{tool}.py')


@TOOLS
@pytest.mark.parametrize('library', LIBRARIES)
def test_options(library, tool, monkeypatch, capsys):
    options = re.findall(r"'(--[a-z-]+)'", script(library, tool).read_text())
    replaced = {**REPLACED, **import_module(f'mmlinattn.commands.{tool}').REPLACED}
    assert {'--work-dir', '--launcher'} < {*options}
    monkeypatch.setattr(sys, 'argv', [f'{tool}.py', '--help'])
    with pytest.raises(SystemExit):
        load_module(f'tools/{tool}.py').main()
    ours = {*re.findall(r'--[a-z-]+', capsys.readouterr().out)} | {'--local-rank'}
    assert {*options} - ours - WITHOUT_USE <= {*replaced}


def test_what_to_type(error_of):
    parser = run_parser('', {'--show': '--show-dir DIR'})
    line = error_of(parser.parse_args, ['config.py', '--show'])
    assert line.endswith('unrecognized arguments: --show; in place of --show: '
                         '--show-dir DIR')  # fmt: skip


@TOOLS
def test_options_of_configs_fit(tool, tmp_path):
    """Those that are to be typed in place of others set what they name."""
    path = tmp_path / 'config.py'
    path.write_text(
        f'_base_ = {CLASSIFIER!r}\nrandomness = dict(seed=None, deterministic=False)'
    )
    replaced = {**REPLACED, **import_module(f'mmlinattn.commands.{tool}').REPLACED}
    for text in replaced.values():
        if not text.startswith('--cfg-options'):
            continue
        words = text.replace('=N', '=3').split()
        args = run_parser('', {}).parse_args([str(path), *words])
        cfg = load_config(str(path), args.cfg_options)
        for key, value in args.cfg_options.items():
            node = cfg
            for name in key.split('.'):
                node = node[name]
            assert node == value


@TOOLS
@pytest.mark.parametrize('tta', (False, True))
def test_mmpretrain(tool, tta):
    """The config is the one that its own script runs."""
    if tta and tool == 'train':
        return
    cfg = load_config(str(script('mmpretrain', tool).parents[1] / 'configs' / (
        CLASSIFIER.partition('::')[2])))  # fmt: skip
    cfg.train_dataloader.pin_memory = False
    expected = Config(cfg.to_dict())
    names = ('amp', 'auto_scale_lr', 'no_validate', 'no_pin_memory', 'resume', 'show')
    names += ('no_persistent_workers', 'show_dir', 'cfg_options')
    args = Namespace(**dict.fromkeys(names), launcher='none', work_dir='work', tta=tta)
    args.checkpoint = None
    load_module(script('mmpretrain', tool)).merge_args(expected, args)
    if tta:
        use_test_time_augmentation(cfg)
    set_loader_defaults(cfg)
    loaders = ('test_dataloader',)
    if tool == 'train':
        loaders = ('train_dataloader', 'val_dataloader', 'test_dataloader')
    for name in loaders:
        ours, theirs = cfg[name].to_dict(), expected[name].to_dict()
        assert {**ours, 'persistent_workers': True} == {
            **theirs,
            'persistent_workers': True,
        }
    assert cfg.model.to_dict() == expected.model.to_dict()


def test_no_persistent_workers_without_workers():
    cfg = Config(dict(default_scope='mmpretrain', train_dataloader=dict(num_workers=0)))
    set_loader_defaults(cfg)
    assert 'persistent_workers' not in cfg.train_dataloader
    others = Config(dict(default_scope='mmdet', train_dataloader=dict(num_workers=0)))
    set_loader_defaults(others)
    assert others.train_dataloader == dict(num_workers=0)


def test_tta_of_a_segmentor_needs_its_keys():
    cfg = Config(dict(default_scope='mmseg', model={}, test_dataloader=dict(
        dataset=dict(pipeline=[]))))  # fmt: skip
    with pytest.raises(KeyError, match='tta_model and tta_pipeline'):
        use_test_time_augmentation(cfg)


@TOOLS
@pytest.mark.parametrize('args', (['--help'], ['none.py', 'none.pth'], ['--what']))
def test_arguments_first(tool, args, run_python):
    """Before the libraries are imported, which takes seconds; threads that wait for
    each other sleep."""
    run_python(f"""
import os, runpy, sys
os.environ.pop('OMP_WAIT_POLICY', None)
sys.argv = ['{tool}.py', *{args!r}]
try:
    runpy.run_path({str(ROOT / 'tools' / f'{tool}.py')!r}, run_name='__main__')
except SystemExit as stop:
    assert stop.code == {0 if args == ['--help'] else 2}
assert not {{'torch', 'mmcv', 'matplotlib'}} & sys.modules.keys()
assert os.environ['OMP_WAIT_POLICY'] == 'PASSIVE'
""")
