import copy
import re
from functools import lru_cache
from pathlib import Path

import pytest
import torch
import yaml
from bases import bases_read_once
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
def entry(name):
    """The metafile's entry of the config `name`."""
    return ENTRIES[name]


@pytest.fixture(scope='session')
def config_path_of():
    """Path of a config of ours by its name."""
    return NAMES.__getitem__


@pytest.fixture
def downstream(name):
    """True if the config `name` is for detection or segmentation."""
    return '_in1k' not in name


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


def pytest_generate_tests(metafunc):
    """Tests with a `name` run for all configs; a module's QUICK says for which ones in
    the normal test run, too. Those with a `smallest` run for the smallest config of
    each kind, which its module's `kind_of` tells by the name; `is_quick` says of which
    kinds in the normal test run."""
    if 'name' in metafunc.fixturenames:
        quick = getattr(metafunc.module, 'QUICK', '')
        marks = {x: () if re.search(quick, x) else pytest.mark.full for x in NAMES}
        params = [pytest.param(x, marks=mark) for x, mark in marks.items()]
        metafunc.parametrize('name', params)
    if 'smallest' in metafunc.fixturenames:
        by_size = sorted(ENTRIES, key=lambda x: -ENTRIES[x]['Metadata']['Parameters'])
        kinds = {metafunc.module.kind_of(name): name for name in by_size}
        quick = metafunc.module.is_quick
        marks = {
            x: () if quick(kind) else pytest.mark.full for kind, x in kinds.items()
        }
        params = [pytest.param(x, marks=mark) for x, mark in marks.items()]
        metafunc.parametrize('smallest', params)
