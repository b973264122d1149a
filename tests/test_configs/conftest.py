import copy
import re
from functools import lru_cache
from pathlib import Path

import pytest
import torch
import yaml
from mmengine.registry import MODELS, DefaultScope

from mmlinattn.utils import bases_read_once, load_config

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


@pytest.fixture(scope='session')
def metafiles():
    """Contents of the metafiles that the index imports."""
    index = yaml.safe_load((ROOT / 'model-index.yml').read_text())
    return [yaml.safe_load((ROOT / path).read_text()) for path in index['Import']]


@pytest.fixture
def entry(name, metafiles):
    """What a metafile says of the config `name`."""
    models = {model['Name']: model for meta in metafiles for model in meta['Models']}
    return models[name]


@pytest.fixture(scope='session')
def config_path_of():
    """Path of a config of ours by its name."""
    return lambda name: NAMES[name]


@pytest.fixture
def config_path(name):
    """Path of the config `name`."""
    return NAMES[name]


@pytest.fixture
def downstream(name):
    """Whether the config `name` is one of detection or segmentation."""
    return '_in1k' not in name


@pytest.fixture
def backbone_id(name, downstream):
    """The backbone's id in the name of a config."""
    return name.split('_')[int(downstream)]


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
    """Builds the model of a config, as the runner does."""
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
    """Tests with a `name` run for all configs, or, if their module has a `kind_of`, for
    the smallest config of each kind; a module's QUICK says for which ones they run in
    the normal test run, too."""
    if 'name' not in metafunc.fixturenames:
        return
    quick = getattr(metafunc.module, 'QUICK', '')
    names = list(NAMES)
    if kind_of := getattr(metafunc.module, 'kind_of', None):
        by_size = sorted(names, key=lambda name: (size_rank(name), name))
        names = {kind_of(name): name for name in reversed(by_size)}.values()
    metafunc.parametrize(
        'name',
        [
            pytest.param(name, marks=() if re.search(quick, name) else pytest.mark.full)
            for name in sorted(names)
        ],
    )


def size_rank(name):
    """How large a config's backbone is, by the letter in its name."""
    letter = re.search(r'(?:soft|softpp|swin|deit|cait|vit)-(xxs|[tsmlhb])', name)
    return ('xxs', 't', 's', 'm', 'l', 'h', 'b').index(letter[1])
