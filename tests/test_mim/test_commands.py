"""What mim says about us, and a tool of ours that it runs."""

import json
import sys

import pytest

import mmlinattn


@pytest.fixture(autouse=True)
def mim_finds_us(modern):
    if modern:
        pytest.skip("onedl's mim fails on a distribution named like its module")


def test_list(user):
    rows = [line.split() for line in user.mim('list').splitlines()]
    assert ['mmlinattn', mmlinattn.__version__] in [row[:2] for row in rows]


def test_search(user, configs):
    lines = user.mim('search', 'mmlinattn').splitlines()
    found = [line.split()[-1] for line in lines if line.startswith('config id:')]
    families = configs.glob('[!_]*/*.py')
    assert sorted(found) == sorted(config.stem for config in families)


def test_search_for_weights(user):
    command = 'search', 'mmlinattn', '--model', 'swin-s', '--field', 'weight'
    output = user.mim(*command, '--display-width', 200)
    assert 'config id: swin-s_in1k' in output
    assert 'swin_small_224_b16x64_300e_imagenet_20210615_110219-7f9d988b.pth' in output
    assert 'no public weights of this config: train it first' in output


def test_download_of_what_there_is_not(user):
    command = 'download', 'mmlinattn', '--config', 'softpp-t_in1k', '--dest', '.'
    output = user.mim(*command, fails=True)
    assert 'no public weights of this config: train it first' in output


def test_gridsearch(user):
    """It reads a config that inherits from ours, and only then looks at its keys."""
    child = user.folder / 'child.py'
    child.write_text("_base_ = 'mmlinattn::soft/softpp-t_in1k.py'\n")
    command = sys.executable, '-m', 'mmlinattn', 'gridsearch', 'mmpretrain', child
    output = user.run(*command, '--search-args', '--missing 1 2', fails=True)
    assert 'Arg missing not in the config file' in output


def test_run(user, configs):
    user.mim(
        'run',
        'mmlinattn',
        'get_flops',
        configs / 'soft/softpp-t_in1k.py',
        '--shape',
        64,
        '--out',
        'flops.json',
    )
    report = json.loads((user.folder / 'flops.json').read_text())
    assert round(report['params'] / 1e6) == 13
    assert report['macs'] > 0


def test_train_finds_config_by_name(user):
    output = user.mim('train', 'mmlinattn', 'softpp-t_in1k.py', '--gpus', 0, fails=True)
    assert 'we find the config file in codebase mmlinattn' in output
    assert 'train.py: error: ' in output
    assert "'data/imagenet/train': there is no such file or folder" in output
