import copy
import re
from functools import lru_cache
from pathlib import Path

import pytest
import torch
import yaml
from bases import bases_read_once
from loading import load_module
from mmengine.registry import MODELS, DefaultScope

from mmlinattn.utils import load_config

ROOT = Path(__file__).parents[2]
NAMES = {path.stem: path for path in sorted(ROOT.glob('configs/[!_]*/*.py'))}


@pytest.fixture(scope='module', autouse=True)
def fast_bases():
    with bases_read_once():
        yield


@lru_cache(None)
def load(name):
    return load_config(str(NAMES[name]))


@pytest.fixture(scope='session')
def names():
    """Names of all configs."""
    return list(NAMES)


def read(path):
    return yaml.safe_load((ROOT / path).read_text())


METAFILES = [read(path) for path in read('model-index.yml')['Import']]
ENTRIES = {model['Name']: model for meta in METAFILES for model in meta['Models']}


@pytest.fixture(scope='session')
def metafiles():
    """Contents of the metafiles that the index imports."""
    return METAFILES


@pytest.fixture
def loaded(folder):
    """Configs of the folder by their names, not to be changed, and their entries."""
    names = [name for name, path in NAMES.items() if path.parent.name == folder]
    return [(name, load(name), ENTRIES[name]) for name in names]


@pytest.fixture(scope='session')
def zoo():
    """The script that writes the tables of the model zoo."""
    return load_module(ROOT / 'docs/site/model_zoo.py')


@pytest.fixture(scope='session')
def entries():
    """The metafiles' entries by the names of configs."""
    return ENTRIES


@pytest.fixture(scope='session')
def config_path_of():
    """Path of a config of ours by its name."""
    return NAMES.__getitem__


@pytest.fixture
def config():
    """Loads a config of ours by its name."""
    return lambda name: copy.deepcopy(load(name))


def build(cfg, device='cpu'):
    model = copy.deepcopy(cfg.model)  # some models change it
    model.setdefault('data_preprocessor', cfg.get('data_preprocessor'))
    scope = DefaultScope.overwrite_default_scope(cfg.default_scope)
    with scope, torch.device(device):
        return MODELS.build(model)


@pytest.fixture(scope='session')
def build_model():
    """Builds the model of a config like the runner."""
    return build


@pytest.fixture(scope='session')
def meta_model():
    """The model of a config, without memory or time spent on weights; configs with
    the same model, such as 1x and 3x, get the same one."""
    built = {}

    def get(name):
        cfg = load(name)
        key = repr((cfg.default_scope, cfg.model, cfg.get('data_preprocessor')))
        if key not in built:
            built[key] = build(cfg, 'meta')
        return built[key]

    return get


def representatives():
    """Names of the smallest config of each setting, of each method in a folder, and of
    each backbone in all its sizes."""
    found, seen = set(), set()
    for name in sorted(NAMES, key=lambda x: ENTRIES[x]['Metadata']['Parameters']):
        setting = re.search(r'_base_/settings/([\w.-]+)', NAMES[name].read_text())[1]
        method, *rest = ['in1k', name] if '_in1k' in name else name.split('_')
        backbone = re.sub(r'-([a-z]|x\w+|s\d+)(?=[-_]|$)', '', rest[0])
        traits = {setting, (NAMES[name].parent.name, method), backbone}
        if traits - seen:
            found.add(name)
        seen |= traits
    return found


def pytest_generate_tests(metafunc):
    """Tests with a `folder` look at all configs in it. Tests with a `name` run for all
    configs, in the normal run for representatives. Those with a `smallest` run for the
    smallest config of each kind, which its module's `kind_of` tells by the name;
    `is_quick` says of which kinds in the normal run."""
    if 'folder' in metafunc.fixturenames:
        metafunc.parametrize('folder', sorted({x.parent.name for x in NAMES.values()}))
    if 'name' in metafunc.fixturenames:
        parametrize(metafunc, 'name', {x: x in QUICK for x in NAMES})
    if 'smallest' in metafunc.fixturenames:
        by_size = sorted(ENTRIES, key=lambda x: -ENTRIES[x]['Metadata']['Parameters'])
        kinds = {metafunc.module.kind_of(name): name for name in by_size}
        is_quick = metafunc.module.is_quick
        parametrize(metafunc, 'smallest', {x: is_quick(y) for y, x in kinds.items()})


def parametrize(metafunc, argument, values):
    """Values of an argument, those that are not quick marked `full`."""
    marks = {x: () if quick else pytest.mark.full for x, quick in values.items()}
    params = [pytest.param(x, marks=mark) for x, mark in marks.items()]
    metafunc.parametrize(argument, params)


QUICK = representatives()
