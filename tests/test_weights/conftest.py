"""The command convert_official, and outputs of official code."""

import logging

import antioversmoothing_fixture as antioversmoothing
import cswin_fixture as cswin
import pytest
import recording
import soft_fixture as soft
import torch

from mmlinattn.commands import convert_official
from mmlinattn.models.backbones.presets import Stage, agents
from mmlinattn.models.backbones.swin import windows
from mmlinattn.weights import pretrained
from mmlinattn.weights.families import FAMILIES


@pytest.fixture(scope='session')
def tool():
    return convert_official


@pytest.fixture(scope='session')
def official():
    """Family and official weights, without buffers, by the name of a recording."""

    def get(name):
        family, _, kind = name.partition('_')
        if family == 'soft':
            return family, soft.weights()
        if family == 'cswin':
            return family, cswin.weights(kind)
        recorded = recording.by_name().get(name, antioversmoothing)
        weights, buffers = recorded.weights(name), FAMILIES[family].buffers
        return family, {k: v for k, v in weights.items() if not k.endswith(buffers)}

    return get


@pytest.fixture(scope='session')
def few_agents():
    """The attentions of agent_swin: the paper's base model has such a third stage."""
    stages = [Stage(i, 4, pad_small_map=False) for i in range(4)]
    first, second, third = map(agents, stages[:3])
    last = windows(stages[3])
    return [first, second, [third, last[1]], last]


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

    def keep(text, level=logging.INFO):
        lines.append((level, text))

    monkeypatch.setattr(pretrained, 'log', keep)
    return lines


@pytest.fixture
def relative_error():

    def error(ours, theirs):
        assert ours.shape == theirs.shape
        return ((ours - theirs).abs().max() / theirs.abs().max()).item()

    return error
