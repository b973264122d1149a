"""Commands of mim on our index, and one of our tools that it runs."""

import re
import sys

import pytest

# onedl's mim fails on a distribution named like its module
pytestmark = pytest.mark.openmmlab


def test_download_of_what_there_is_not(user):
    """mim takes what is behind the last slash for a file, which lies there already; the
    config comes alone."""
    name = 'softpp-t_in1k'
    output = user.mim('download', 'mmlinattn', '--config', name, '--dest', '.')
    assert 'Traceback' not in output
    assert {path.name for path in user.folder.glob('*')} == {f'{name}.py', 'data'}
    output = user.mim('search', 'mmlinattn', '--config', name)
    assert 'no public weights of this config' in output


def test_search_by_the_name_in_configs(user):
    output = user.mim('search', 'mmlinattn', '--model', 'softpp', '--field', 'config')
    assert 'configs/soft/softpp-t_in1k.py' in output and 'Traceback' not in output


@pytest.mark.full
def test_gridsearch(user):
    """It reads a config that inherits from ours, and only then looks at its keys."""
    child = user.folder / 'child.py'
    child.write_text("_base_ = 'mmlinattn::soft/softpp-t_in1k.py'\n")
    command = sys.executable, '-m', 'mmlinattn', 'gridsearch', 'mmpretrain', child
    output = user.run(*command, '--search-args', '--missing 1 2', fails=True)
    assert 'Arg missing not in the config file' in output


def test_run(user, configs):
    config = configs / 'soft/softpp-t_in1k.py'
    command = 'run', 'mmlinattn', 'get_flops', config, '--shape', 64
    assert re.search(r' all +\S+ +13\.04 ', user.mim(*command))


def test_train_finds_config_by_name(user):
    command = 'train', 'mmlinattn', 'softpp-t_in1k.py', '--gpus', 0
    output = user.mim(*command, '--resume', 'no.pth', fails=True)
    assert 'we find the config file in codebase mmlinattn' in output
    assert "load_from='no.pth'" in output
