"""Functions that the recordings of official code share."""

import importlib.util
import json
import sys
import zlib
from pathlib import Path
from types import ModuleType, SimpleNamespace

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


class Recording:
    """Recorded models of one file, by name.

    Args:
        name (str): Of the files beside this one.
        scale (Callable): As :func:`seeded_weights` takes it.
    """

    def __init__(self, name, scale):
        self.name, self.scale = name, scale

    def weights(self, model):
        """Official state dict of a recorded model; buffers are zero or left out."""
        seed = zlib.crc32(model.encode())
        return seeded_weights(read_shapes(self.name)[model], seed, self.scale)

    def outputs(self, model):
        """Recorded tensors of a model, by name."""
        return read_outputs(self.name, f'{model}/')

    def write(self, models, run, image, buffers=()):
        """Writes shapes and outputs of official models, which ``run(model, image)``
        returns by name; buffers of these names are left out."""
        write_shapes(self.name, models, buffers)
        for name, model in models.items():
            model.load_state_dict(self.weights(name), strict=not buffers)
            found = run(model.eval(), image(name)).items()
            write_outputs(self.name, {f'{name}/{key}': x for key, x in found})

    def write_sizes(self, models):
        """Writes numbers of parameters of the papers' models, pairs with names."""
        for name, model in models:
            number = torch.tensor(sum(x.numel() for x in model.parameters()))
            write_outputs(self.name, {f'parameters/{name}': number})


@torch.no_grad()
def logits_and_tokens(model, x):
    """Logits of an official classifier and its tokens after the final norm; the
    outputs alone, if it has none."""
    tokens = []
    if hasattr(model, 'norm'):
        model.norm.register_forward_hook(lambda module, args, out: tokens.append(out))
    out = model(x)
    return dict(logits=out, tokens=tokens[0]) if tokens else out


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


def stub_backbones(register):
    """Replaces the detection library that official backbones were written for, whose
    files are modules of ``official.models.backbones``."""
    registry = SimpleNamespace(register_module=register)
    for name in ('official', 'official.models', 'official.models.backbones', 'mmcv'):
        stub(name)
    stub('official.utils', get_root_logger=None)
    stub('official.models.builder', BACKBONES=registry)
    stub('mmcv.runner', _load_checkpoint=None)
    return registry


# Swin's and CSWin's sizes in the papers of linear attentions.
SWINS = dict(
    tiny=dict(embed_dims=96, depths=[2, 2, 6, 2], num_heads=[3, 6, 12, 24]),
    small=dict(embed_dims=96, depths=[2, 2, 18, 2], num_heads=[3, 6, 12, 24]),
    base=dict(embed_dims=128, depths=[2, 2, 18, 2], num_heads=[4, 8, 16, 32]),
)
CSWINS = dict(
    tiny=dict(embed_dims=64, depths=[2, 4, 18, 1], num_heads=[2, 4, 8, 16]),
    small=dict(embed_dims=64, depths=[3, 6, 29, 2], num_heads=[2, 4, 8, 16]),
    base=dict(embed_dims=96, depths=[3, 6, 29, 2], num_heads=[4, 8, 16, 32]),
)


def import_file(path, package=''):
    """A file as a module."""
    spec = importlib.util.spec_from_file_location(f'{package}{path.stem}', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
