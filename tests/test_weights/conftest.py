"""The command convert_official, and what official code computed."""

import importlib.util
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
TOOL = ROOT / 'tools/model_converters/convert_official.py'
DATA = ROOT / 'tests/data/official'


def load_module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope='session')
def tool():
    """The command as a module."""
    return load_module(TOOL)


@pytest.fixture(scope='session')
def soft():
    """What was recorded of SOFT."""
    return load_module(DATA / 'soft_fixture.py')


@pytest.fixture(scope='session')
def antioversmoothing():
    """What was recorded of DeiT, CaiT and Swin."""
    return load_module(DATA / 'antioversmoothing_fixture.py')


@pytest.fixture(scope='session')
def cswin():
    """What was recorded of CSWin."""
    return load_module(DATA / 'cswin_fixture.py')


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
def refused(convert, capsys):
    """Runs the tool on what it can't take, and returns the line it prints."""

    def run(checkpoint, *options, family='soft'):
        with pytest.raises(SystemExit) as exit_info:
            convert(checkpoint, *options, family=family)
        assert exit_info.value.code == 2
        assert not convert.dst.exists()
        (line,) = capsys.readouterr().err.splitlines()
        assert 'official.pth' in line
        return line

    return run


@pytest.fixture
def relative_error():

    def error(ours, theirs):
        assert ours.shape == theirs.shape
        return ((ours - theirs).abs().max() / theirs.abs().max()).item()

    return error
