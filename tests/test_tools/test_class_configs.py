"""Configs whose types are classes, through every tool: a detector, a classifier and a
segmentor, which have no default scope, like those of the libraries."""

import sys
from pathlib import Path

import pytest
import torch
from class_configs import CONFIGS, write_config, write_data
from loading import run_command
from mmengine.config import Config
from mmengine.optim import AmpOptimWrapper, OptimWrapper
from mmpretrain.models import ImageClassifier
from torch import nn

from mmlinattn import parts
from mmlinattn.commands import compare_predictions, export, get_flops
from mmlinattn.models import ConvEmbedding
from mmlinattn.runs import test as run_test
from mmlinattn.runs import train
from mmlinattn.runs.training import choose_precision
from mmlinattn.utils import library_of, load_config

# the first of the tests that share a training is the quick one
LIBRARIES = [
    pytest.param(name, marks=() if name == 'mmpretrain' else pytest.mark.full)
    for name in CONFIGS
]


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp('world')
    write_data(folder)
    return folder


@pytest.fixture
def write(world, tmp_path, monkeypatch):
    """Writes a config of classes, mine.py, which inherits another one."""
    monkeypatch.chdir(tmp_path)
    return lambda library, more='': write_config(library, world, more)


@pytest.mark.parametrize('library', LIBRARIES)
def test_through_the_tools(library, write, world, capsys):
    """Training, its dump, resuming, testing, pictures and counts; a dump has the
    classes' names in full."""
    config, photos = write(library), str(world / 'val2017')
    assert load_config(config).default_scope is None
    trained = train(config, 'work')
    longer = {'train_cfg.max_epochs': 2}
    resumed = train('work/mine.py', 'work', longer, resume='auto')
    assert resumed.checkpoint.name == 'epoch_2.pth'
    for path in (config, 'work/mine.py'):
        metrics = run_test(path, trained.checkpoint, 'test')
        assert metrics or library == 'mmdet'
    if library != 'mmseg':  # which has no default for it
        run_test(config, trained.checkpoint, 'test', tta=True)
    run_test(config, trained.checkpoint, 'test', out='out.pkl', show_dir='shown')
    assert Path('out.pkl').exists()
    # of mmseg, in the folder of the first visualizer of this process
    assert [*Path('.').rglob('vis_image/*.png'), *Path('shown').rglob('*.*g')]
    words = [config, '--checkpoint', str(trained.checkpoint), '--image', photos]
    compare_predictions.main([*words, '--out', 'predictions', '--score', '0'])
    assert len([*Path('predictions').glob('*.json')]) == 2
    capsys.readouterr()
    for path in (config, 'work/mine.py'):
        get_flops.main([path, *(['--shape', '64'] if library == 'mmseg' else [])])
        assert ', one image of ' in capsys.readouterr().out
    get_flops.main([config, '--shape', '64'])
    # as of a config by new-config, too, whose dump has no base
    inherit = 'with read_base():\n    from .work.mine import *\n'
    Path('heir.py').write_text(f'from mmengine.config import read_base\n{inherit}')
    assert load_config('heir.py').model == load_config('work/mine.py').model


@pytest.mark.full
@pytest.mark.parametrize('library', CONFIGS)
def test_exports(library, write, capsys):
    config = write(library)
    trained = train(config, 'work')
    words = [config, str(trained.checkpoint), '--whole', '--verify', '--out', 'x.onnx']
    export.main(words)
    printed = capsys.readouterr().out
    assert 'verdict: the file gives' in printed or 'verdict: none' in printed


def test_weights_of_a_class(write, tmp_path):
    """``init_cfg`` of MMEngine's class, and its name in full, as a dump has it."""
    more = "\nmodel['backbone'].update(init_cfg=dict(type=PretrainedInit, checkpoint="
    config = write('mmpretrain', f"{more}'x.pth', prefix='backbone.'))\n")
    Path('dumped.py').write_text(load_config(config).pretty_text)
    for path in (config, 'dumped.py'):
        cfg = load_config(path)
        with pytest.raises(FileNotFoundError, match=r"'x\.pth'"):
            parts.build_model(cfg.model.backbone).init_weights()


@pytest.mark.parametrize('kind', [nn.LayerNorm, 'torch.nn.LayerNorm', 'LN'])
def test_layer_norm_of_maps(kind):
    """It normalizes channels, whatever names it."""
    embedding = ConvEmbedding(3, 8, norm_cfg=dict(type=kind), act_cfg=None).eval()
    out = embedding(torch.rand(1, 3, 64, 96))
    maps = out[0] if isinstance(out, tuple) else out
    channels = 1 if maps.dim() == 4 else -1
    assert maps.mean(channels).abs().max() < 1e-5


@pytest.mark.parametrize(
    'kind', [AmpOptimWrapper, 'AmpOptimWrapper', 'mmengine.optim.AmpOptimWrapper']
)
def test_mixed_precision_on_a_cpu(kind, monkeypatch):
    monkeypatch.setattr('mmlinattn.runs.training.get_device', lambda: 'cpu')
    cfg = Config(dict(optim_wrapper=dict(type=kind, loss_scale='dynamic')))
    choose_precision(cfg, amp=False)
    assert cfg.optim_wrapper == dict(type='OptimWrapper')
    cfg = Config(dict(optim_wrapper=dict(type=OptimWrapper)))
    choose_precision(cfg, amp=False)
    assert cfg.optim_wrapper.type is OptimWrapper


class Own(ImageClassifier):
    """A model of a person's own."""


@pytest.mark.parametrize(
    'entries, library',
    [
        (dict(default_scope='mmseg', model=dict(type=Own)), 'mmseg'),
        (dict(default_scope=None, model=dict(type=Own)), 'mmpretrain'),
        (dict(model=dict(type='mmdet.models.RetinaNet')), 'mmdet'),
        (dict(model=dict(type='RetinaNet')), 'mmengine'),
        (dict(model=dict(type=nn.Linear)), 'mmengine'),
        ({}, 'mmengine'),
    ],
)
def test_library_of(entries, library):
    assert library_of(Config(entries)) == library


SPY = """
import sys

from mmlinattn.ops import Finder


def kind():
    pass


enabled = any(getattr(x, '__name__', '') == 'Finder' for x in sys.meta_path)
"""
CALL = """
import sys

from mmlinattn.cli.run_arguments import run_options

sys.meta_path[:] = [x for x in sys.meta_path if getattr(x, '__name__', '') != 'Finder']
run_options('mine.py', None, None)
import spy

assert spy.enabled
"""


def test_operators_are_there_before_a_config_is_read(tmp_path):
    """Reading it imports the libraries, which import mmcv's operators."""
    (tmp_path / 'spy.py').write_text(SPY)
    (tmp_path / 'mine.py').write_text('from spy import kind\n\nx = dict(type=kind)\n')
    run_command(sys.executable, '-W', 'ignore', '-c', CALL, cwd=tmp_path)
