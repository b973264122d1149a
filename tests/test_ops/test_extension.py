"""How the operators come into an mmcv without a compiled part."""

import os
import shutil
import sys
from functools import partial
from importlib import import_module
from inspect import isfunction
from pathlib import Path

import mmcv
import pytest
from loading import run_command

from mmlinattn import ops

SOURCE = Path(ops.__file__).with_name('_ext.py')


@pytest.fixture
def folder(tmp_path):
    """The folder of an mmcv without its compiled part."""
    lite = tmp_path / 'mmcv'
    ignored = shutil.ignore_patterns('_ext*', 'csrc', '__pycache__')
    shutil.copytree(Path(mmcv.__file__).parent, lite, ignore=ignored)
    return lite


@pytest.fixture
def run(folder):
    """Runs Python with that mmcv."""
    paths = folder.parent, os.environ.get('PYTHONPATH')
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(str(x) for x in paths if x))
    return partial(run_command, sys.executable, '-W', 'ignore', env=env)


SCRIPT = """
import sys
from multiprocessing import get_context

import mmlinattn.ops

mmlinattn.ops.enable()
mmlinattn.ops.enable()


def suppress(device):
    import mmcv.ops, torch
    boxes = torch.tensor([[0.0, 0, 9, 9], [0, 0, 9, 8], [20, 0, 29, 9]])
    return mmcv.ops.nms(boxes, boxes[:, 3], 0.5)[1].tolist()


if __name__ == '__main__':
    assert sum('Finder' in str(x) and 'mmlinattn' in str(x) for x in sys.meta_path) == 1
    assert not {'torch', 'mmcv', 'torchvision'} & {*sys.modules}
    import mmcv.ops
    from mmcv import _ext
    assert not {'mmlinattn.ops.boxes', 'torchvision'} & {*sys.modules}
    # others are told the truth, and mmcv's own modules can be imported
    lacking = 'ball_query_forward', 'points_in_boxes_cpu_forward', 'no_such_operator'
    assert not any(hasattr(_ext, x) for x in lacking)
    assert hasattr(_ext, 'nms') and _ext.nms is _ext.nms and 'nms' in dir(_ext)
    assert hasattr(mmcv.ops, 'ball_query')
    assert suppress(0) == [0, 2]
    assert 'mmlinattn.ops.boxes' in sys.modules
    from mmcv.utils import collect_env
    assert 'mmlinattn' in collect_env()['MMCV Compiler']
    with get_context('spawn').Pool(1) as pool:
        assert pool.map(suppress, [0]) == [[0, 2]]
"""


def test_a_call_is_enough(run, tmp_path):
    """Also where worker processes start anew; and nothing is imported too early."""
    script = tmp_path / 'script.py'
    script.write_text(SCRIPT)
    run(script)


IMPORTED = """
import mmlinattn.models, mmlinattn.timm
try:
    import mmcv.ops
except ModuleNotFoundError as error:
    assert error.name == 'mmcv._ext', error
else:
    raise AssertionError('mmcv.ops is there')
import mmlinattn.ops
mmlinattn.ops.enable()
import mmcv.ops
"""


@pytest.mark.modern_full
def test_an_import_provides_nothing(run):
    """The process is as without us, and a call mends it even after the error."""
    run('-c', IMPORTED)


# mmcv's version is the only thing that mmdet checks of it
OTHERS = """
import sys, mmcv.ops, mmdet
assert 'mmlinattn.ops.boxes' not in sys.modules and 'torchvision' not in sys.modules
"""


@pytest.mark.modern_full
def test_installed_for_programs_that_do_not_import_us(run, folder):
    command = ('-m', 'mmlinattn.ops')
    assert 'has the operators of mmlinattn' in run(*command, '--install')
    run('-c', OTHERS)


@pytest.mark.modern_full
def test_without_the_package(run, folder):
    shutil.copy(SOURCE, folder)
    error = run(
        '-c',
        'import importlib.util as util\n'
        'find = util.find_spec\n'
        "util.find_spec = lambda x, *a: find(x, *a) if x != 'mmlinattn' else None\n"
        'import mmcv.ops\n',
        fails=True,
    )
    line = error.strip().splitlines()[-1]
    assert '_ext.py needs mmlinattn, which is not installed: install it, or' in line


def test_names_are_those_of_the_functions():
    """Public functions of the modules that have tensors as arguments."""
    there = {
        name
        for module in ops.MODULES
        for name, x in vars(import_module(f'mmlinattn.ops.{module}')).items()
        if isfunction(x)
        and x.__module__ == f'mmlinattn.ops.{module}'
        and not name.startswith('_')
    }
    assert there == {x for x in ops.NAMES if not x.startswith('get_')}
    assert all(callable(ops.find(name)) for name in ops.NAMES)
