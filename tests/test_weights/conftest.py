"""The command convert_official, and outputs of official code."""

import logging
from pathlib import Path

import pytest
import torch
from loading import load_module

from mmlinattn.weights import pretrained
from mmlinattn.weights.families import FAMILIES

ROOT = Path(__file__).parents[2]
TOOL = ROOT / 'tools/model_converters/convert_official.py'
DATA = ROOT / 'tests/data/official'


def module(path):
    """A fixture: a file as a module."""
    return pytest.fixture(scope='session')(lambda: load_module(path))


# recordings of official code
antioversmoothing = module(DATA / 'antioversmoothing_fixture.py')
cswin = module(DATA / 'cswin_fixture.py')
leaplab = module(DATA / 'leaplab_fixture.py')
rotary = module(DATA / 'rotary_fixture.py')
soft = module(DATA / 'soft_fixture.py')
tool = module(TOOL)


@pytest.fixture(scope='session')
def variants(leaplab):
    """The recordings of Swin and CSWin with other attentions, by name."""
    both = leaplab, load_module(DATA / 'inline_fixture.py')
    return {name: recorded for recorded in both for name in recorded.NAMES}


@pytest.fixture(scope='session')
def official(antioversmoothing, cswin, rotary, soft, variants):
    """Family and official weights, without buffers, by the name of a recording."""

    def get(name):
        family, _, kind = name.partition('_')
        if family == 'soft':
            return family, soft.weights()
        if family == 'cswin':
            return family, cswin.weights(kind)
        if name in rotary.NAMES:
            return family, rotary.weights(name)
        if name in variants:
            return family, variants[name].weights(name)
        weights = antioversmoothing.weights(name)
        buffers = FAMILIES[family].buffers
        return family, {k: v for k, v in weights.items() if not k.endswith(buffers)}

    return get


@pytest.fixture
def convert(tool, tmp_path):
    """Runs the tool on a checkpoint; the path of its result is ``convert.dst``."""

    def run(checkpoint, *options, family='soft'):
        src = tmp_path / 'official.pth'
        torch.save(checkpoint, src)
        tool.main([family, str(src), str(run.dst), *options])
        return torch.load(run.dst, weights_only=True)

    run.dst = tmp_path / 'new' / 'ours.pth'
    return run


@pytest.fixture
def said(monkeypatch):
    """The log, as pairs of a level and a text."""
    lines = []

    def keep(text, logger=None, level=logging.INFO):
        lines.append((level, text))

    monkeypatch.setattr(pretrained, 'print_log', keep)
    return lines


@pytest.fixture
def relative_error():

    def error(ours, theirs):
        assert ours.shape == theirs.shape
        return ((ours - theirs).abs().max() / theirs.abs().max()).item()

    return error
