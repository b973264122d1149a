import copy
import gc
import itertools
import logging
import os
import os.path as osp
import sys
from functools import lru_cache
from pathlib import Path

import pytest
import torch
import yaml
from mmengine.config import config
from mmengine.config import utils as config_utils
from mmengine.logging import MMLogger
from mmengine.registry import DefaultScope
from mmengine.runner import CheckpointLoader
from mmengine.utils import manager
from mmengine.visualization import Visualizer
from xdist.scheduler import LoadScopeScheduling

# collections that imports trigger find nothing
gc.disable()
# PyYAML's own parser takes seconds for the index of models
yaml.SafeLoader = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
ROOT = Path(__file__).resolve().parents[1]
# the modules that tests share
FOLDERS_OF_MODULES = ('tests', 'tests/data/official')
sys.path[:0] = [str(ROOT / folder) for folder in FOLDERS_OF_MODULES]

from loading import run_command  # noqa: E402

FOLDERS = itertools.count()
# files whose tests share a training, or other work of seconds
SHARE_WORK = {
    *('test_adapt.py', 'test_adapt_teachers.py', 'test_packaging.py'),
    'test_paper_flops.py',
    *('test_right_configs.py', 'test_site.py'),
}


class Scheduling(LoadScopeScheduling):
    """Tests that share work run in one process. pytest-xdist's own groups, which are
    marks, have no effect with pytest 9.2."""

    def _split_scope(self, nodeid):
        path, _, test = nodeid.partition('::')
        if Path(path).name in SHARE_WORK:
            return path
        # tests of a config share its contents and its model
        if 'test_configs/' in path and '[' in test:
            return test.partition('[')[2]
        return nodeid


def pytest_xdist_make_scheduler(config, log):
    return Scheduling(config, log)


def pytest_collection_finish():
    gc.enable()


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
    """Removes a runner's scope, where unscoped types are looked up, its visualizer,
    which others of its name would draw with, and the tools' reader of checkpoints and
    environment, which a command that a later test starts would have."""
    DefaultScope._instance_dict.clear()
    for kind in (Visualizer, *Visualizer.__subclasses__()):
        kind._instance_dict.clear()
    schemes, environment = dict(CheckpointLoader._schemes), dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(environment)
    DefaultScope._instance_dict.clear()
    CheckpointLoader._schemes = schemes


@pytest.fixture(scope='session', autouse=True)
def quick_mmengine():
    """What takes MMEngine most of the time of small runs is done once, or not at all:
    looking for libraries, reading their index of models and the files of configs that
    do not change; neat Python in copies of configs, and notes on initialization."""
    read = config.Config._file2dict
    read_once = lru_cache(None)(read)

    def read_copy(filename, *args, **kwargs):
        path = osp.abspath(osp.expanduser(filename))
        if path.startswith((str(ROOT), sys.prefix)):
            return copy.deepcopy(read_once(path, *args, **kwargs))
        return read(filename, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config.Config, '_file2dict', staticmethod(read_copy))
        for module, name in ((config, 'is_installed'), (config_utils, 'load')):
            patch.setattr(module, name, lru_cache(None)(getattr(module, name)))
        for name in ('mmengine.config.config', 'yapf.yapflib.yapf_api'):
            neat = f'{name}.FormatCode'
            patch.setattr(neat, lambda text, **_: (text, True), raising=False)
        for name in ('base_module', 'weight_init'):
            notes = f'mmengine.model.{name}.update_init_info'
            patch.setattr(notes, lambda *args, **kwargs: None)
        yield


@pytest.fixture(scope='session', autouse=True)
def quiet():
    """MMEngine's initialization prints every parameter."""
    MMLogger.get_current_instance().setLevel(logging.WARNING)


@pytest.fixture(autouse=True)
def no_loggers_of_others(quiet):
    """A logger writes to the output of the test that made it, which ends with it."""
    loggers = MMLogger._instance_dict.copy()
    yield
    while manager._lock._is_owned():  # MMEngine keeps it where a constructor fails
        manager._lock.release()
    MMLogger._instance_dict.clear()
    MMLogger._instance_dict.update(loggers)


@pytest.fixture
def tmp_path(tmp_path):
    """A folder whose path no other test has: what is cached knows files by paths, and
    pytest before 9.2 gives those of removed folders again."""
    folder = tmp_path / str(next(FOLDERS))
    folder.mkdir()
    return folder


@pytest.fixture
def run_python(tmp_path):
    """Runs code in an interpreter that has imported nothing yet."""
    command = sys.executable, '-W', 'ignore', '-c'
    return lambda code, cwd=tmp_path: run_command(*command, code, cwd=cwd)


@pytest.fixture
def error_of(capsys):
    """Calls a command that ends with exit code 2; its only line on stderr."""

    def call(command, *args, **options):
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            command(*args, **options)
        assert stop.value.code == 2
        (line,) = capsys.readouterr().err.splitlines()
        return line

    return call
