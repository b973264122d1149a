"""What mim says about us, and a tool of ours that it runs."""

import json

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
    assert (
        "train.py: error: train_dataloader.dataset.data_root='data/imagenet': "
        'there is no such file or folder'
    ) in output
