"""Writes what no refactoring may change, in lines to compare by diff:

    python tests/dump.py --out before.txt

Contents of all configs; of their models, names and shapes of entries and the structure;
initial values of a miniature of every backbone by a seed; signatures of all classes.
"""

import argparse
import copy
import hashlib
import inspect
import logging
import sys
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from pprint import pformat

import torch
from mmengine.config import config
from mmengine.config import utils as config_utils
from mmengine.logging import MMLogger
from mmengine.registry import MODELS

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))

import miniature_backbones
import our_configs

from mmlinattn.registry import MODELS as OURS
from mmlinattn.utils import load_config

NECKS = {
    'SimpleFeaturePyramid': dict(in_channels=32, out_channels=8),
    'ConvPoolingNeck': dict(in_channels=32, hidden_channels=8),
}


def digest(*parts):
    checksum = hashlib.sha256()
    for part in parts:
        checksum.update(part if isinstance(part, bytes) else str(part).encode())
    return checksum.hexdigest()[:16]


def structure(model):
    entries = {key: tuple(x.shape) for key, x in model.state_dict().items()}
    return digest(entries), digest(repr(model)), len(entries)


def initial_values(kind, **options):
    """Those of a model, and the next random number."""
    torch.manual_seed(0)
    model = MODELS.build({**options, 'type': f'mmlinattn.{kind}'})
    model.init_weights()
    entries = model.state_dict().items()
    values = [key.encode() + x.numpy().tobytes() for key, x in entries]
    return digest(*values, torch.rand(1).item())


def be_quick():
    """Leaves out what takes MMEngine most of the time: it reads a base for each heir,
    and indices of models each time."""
    read = lru_cache(None)(config.Config._file2dict)
    config.Config._file2dict = staticmethod(
        lambda *args, **kwargs: copy.deepcopy(read(*args, **kwargs))
    )
    config.is_installed = lru_cache(None)(config.is_installed)
    config_utils.load = lru_cache(None)(config_utils.load)
    config.FormatCode = lambda text, **_: (text, True)


def lines():
    """What may not change, a line each."""
    for name, cfg in miniature_backbones.CASES.items():
        yield 'values', name, initial_values(cfg['type'], **cfg)
    for kind, options in NECKS.items():
        yield 'values', kind, initial_values(kind, **options)
    for name, kind in sorted(OURS.module_dict.items()):
        yield 'signature', name, inspect.signature(kind)
    for name, path in our_configs.ALL_PATHS.items():
        if name in our_configs.PATHS:
            yield 'config', name, digest(pformat(our_configs.loaded(name).to_dict()))
            yield 'model', name, *structure(our_configs.meta_model(name))
        elif find_spec('mmrotate'):  # on one stack only
            yield 'config', name, digest(pformat(load_config(str(path)).to_dict()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--out', type=Path, required=True, metavar='FILE')
    args = parser.parse_args()
    MMLogger.get_current_instance().setLevel(logging.ERROR)
    be_quick()
    with args.out.open('w') as file:
        for line in lines():
            print(*line, file=file)


if __name__ == '__main__':
    main()
