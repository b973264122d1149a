import gc
import importlib.util
import logging
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from mmengine.logging import MMLogger
from mmengine.registry import DefaultScope
from mmengine.runner import CheckpointLoader

ROOT = Path(__file__).resolve().parents[1]
# the modules that the tools share are next to them
sys.path.insert(0, str(ROOT / 'tools'))
SHARE_WORK = {'test_paper_flops.py', 'test_packaging.py', 'test_make_shapes.py'}


def pytest_collection_modifyitems(items):
    """Files whose tests share a training, or other work of seconds, stay together in
    one process."""
    for item in items:
        if 'test_mim' in item.path.parts or item.path.name in SHARE_WORK:
            item.add_marker(pytest.mark.xdist_group(str(item.path)))


def pytest_sessionfinish():
    """Saves coverage now: a process with many libraries may crash when it ends."""
    coverage = sys.modules.get('coverage')
    measured = coverage and coverage.Coverage.current()
    if measured:
        measured.save()


@pytest.fixture(scope='module', autouse=True)
def quick_collections():
    """MMEngine's data sets collect garbage for 0.5 s when they are made, most of it in
    libraries."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def no_traces():
    """A runner leaves its scope behind, where unscoped types are looked up, and the
    tools have MMEngine load checkpoints by their own reader."""
    DefaultScope._instance_dict.clear()
    schemes = dict(CheckpointLoader._schemes)
    yield
    DefaultScope._instance_dict.clear()
    CheckpointLoader._schemes = schemes


@pytest.fixture(scope='session', autouse=True)
def quiet():
    """MMEngine's initialization prints every parameter."""
    MMLogger.get_current_instance().setLevel(logging.WARNING)


@pytest.fixture(autouse=True)
def no_loggers_of_others(quiet):
    """A logger writes to the output of the test that made it, which ends with it."""
    loggers = MMLogger._instance_dict.copy()
    yield
    MMLogger._instance_dict.clear()
    MMLogger._instance_dict.update(loggers)


@pytest.fixture(scope='session')
def load_tool():
    """Loads a file of tools/ as a module."""

    def load(path):
        path = ROOT / 'tools' / path
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
def run_python(tmp_path):
    """Runs code in an interpreter that has imported nothing yet."""

    def run(code, cwd=tmp_path):
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-c', code],
            capture_output=True,
            text=True,
            cwd=cwd,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
