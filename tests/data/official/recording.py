"""Functions that the recordings of official code share."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import torch

HERE = Path(__file__).parent


def read_shapes(name):
    """Shapes of state dicts, by model and key."""
    path = HERE / f'{name}_keys.json'
    return json.loads(path.read_text()) if path.exists() else {}


def write_shapes(name, models, buffers=()):
    """Writes shapes, except of entries whose names end with ``buffers``."""
    shapes = {
        model: {
            key: list(value.shape)
            for key, value in module.state_dict().items()
            if not key.endswith(buffers)
        }
        for model, module in models.items()
    }
    text = json.dumps({**read_shapes(name), **shapes})
    text = text.replace('], ', '],\n').replace('}, ', '},\n')
    (HERE / f'{name}_keys.json').write_text(f'{text}\n')


def seeded_weights(shapes, seed, scale):
    """A state dict of normal noise, which ``scale(key, shape, noise)`` changes."""
    rng = np.random.RandomState(seed)
    state_dict = {}
    for key, shape in sorted(shapes.items()):
        value = np.array(scale(key, shape, rng.standard_normal(shape)))
        value = torch.from_numpy(value)
        state_dict[key] = value.float() if value.is_floating_point() else value
    return state_dict


def noise(*shape):
    """One normalized image, or tokens."""
    return torch.from_numpy(np.random.RandomState(1).standard_normal(shape)).float()


def read_outputs(name, prefix=''):
    """Recorded tensors whose names begin with a prefix, by the rest of their names."""
    with np.load(HERE / f'{name}_outputs.npz') as recorded:
        return {
            key[len(prefix) :]: torch.from_numpy(recorded[key])
            for key in recorded.files
            if key.startswith(prefix)
        }


def write_outputs(name, tensors):
    path = HERE / f'{name}_outputs.npz'
    recorded = dict(np.load(path)) if path.exists() else {}
    recorded.update((key, value.numpy()) for key, value in tensors.items())
    np.savez_compressed(path, **recorded)


def stub(name, **contents):
    """A stand-in for a module that official code imports."""
    sys.modules[name] = ModuleType(name)
    vars(sys.modules[name]).update(contents)


def stub_timm():
    """Replaces imports of timm that official models need little or not at all."""
    for name in ('timm', 'timm.models'):
        stub(name)
    stub('timm.data', IMAGENET_DEFAULT_MEAN=None, IMAGENET_DEFAULT_STD=None)
    stub('timm.models.helpers', load_pretrained=None)
    stub(
        'timm.models.layers',
        DropPath=torch.nn.Identity,
        to_2tuple=lambda side: (side, side),
        trunc_normal_=torch.nn.init.trunc_normal_,
    )
    stub('timm.models.registry', register_model=lambda function: function)
    stub('timm.models.resnet', resnet26d=None, resnet50d=None)
    stub('timm.models.vision_transformer', _cfg=dict)


def import_file(path, package=''):
    """A file as a module."""
    spec = importlib.util.spec_from_file_location(f'{package}{path.stem}', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
