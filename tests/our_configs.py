"""Our configs by their names, and quick reading of many."""

import copy
import os.path as osp
from contextlib import contextmanager
from functools import lru_cache

import torch
import yaml
from loading import ROOT
from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope

from mmlinattn.utils import load_config

PATHS = {path.stem: path for path in sorted(ROOT.glob('configs/[!_]*/*.py'))}


def read(path):
    return yaml.safe_load((ROOT / path).read_text())


METAFILES = [read(path) for path in read('model-index.yml')['Import']]
ENTRIES = {model['Name']: model for meta in METAFILES for model in meta['Models']}
BUILT = {}
READ, FIND = Config._file2dict, Config._get_cfg_path
READ_ONCE, FIND_ONCE = (lru_cache(maxsize=None)(x) for x in (READ, FIND))


@contextmanager
def bases_read_once():
    """Makes loading many configs quick while no file changes.

    MMEngine reads all bases of every config again, and for a base of another package
    all its metafiles. Inside this context it reads a file once.
    """

    def read_copy(filename, *args, **kwargs):
        path = osp.abspath(osp.expanduser(filename))
        return copy.deepcopy(READ_ONCE(path, *args, **kwargs))

    def find_path(cfg_path, filename):
        # a path of another package does not depend on the file that asks
        if '::' in cfg_path:
            return FIND_ONCE(cfg_path, None)
        return FIND(cfg_path, filename)

    Config._file2dict = staticmethod(read_copy)
    Config._get_cfg_path = staticmethod(find_path)
    try:
        yield
    finally:
        Config._file2dict = staticmethod(READ)
        Config._get_cfg_path = staticmethod(FIND)


@lru_cache(None)
def loaded(name):
    """A config that is not to be changed."""
    with bases_read_once():
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
