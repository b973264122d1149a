"""Our configs by their names."""

import copy
from functools import lru_cache

import torch
import yaml
from loading import ROOT
from mmengine.registry import MODELS, DefaultScope

from mmlinattn.utils import load_config

ALL_PATHS = {path.stem: path for path in sorted(ROOT.glob('configs/[!_]*/*.py'))}
# rotated detectors, whose library is on one stack only, have test_rotated.py
PATHS = {
    name: path for name, path in ALL_PATHS.items() if path.parent.name != 'rotated'
}


def read(path):
    return yaml.safe_load((ROOT / path).read_text())


METAFILES = [read(path) for path in read('model-index.yml')['Import']]
ENTRIES = {
    model['Name']: model
    for meta in METAFILES
    for model in meta['Models']
    if model['Name'] in PATHS
}
BUILT = {}


@lru_cache(None)
def loaded(name):
    """A config that is not to be changed."""
    return load_config(str(PATHS[name]))


def load(name):
    return copy.deepcopy(loaded(name))


def build(cfg, device='cpu'):
    """Builds the model of a config like the runner."""
    model = copy.deepcopy(cfg.model)  # some models change it
    model.setdefault('data_preprocessor', cfg.get('data_preprocessor'))
    scope = DefaultScope.overwrite_default_scope(cfg.default_scope)
    with scope, torch.device(device):
        return MODELS.build(model)


def meta_model(name):
    """The model of a config, without memory or time spent on weights; configs with the
    same model, such as 1x and 3x, get the same one."""
    cfg = loaded(name)
    key = repr((cfg.default_scope, cfg.model, cfg.get('data_preprocessor')))
    if key not in BUILT:
        BUILT[key] = build(cfg, 'meta')
    return BUILT[key]
