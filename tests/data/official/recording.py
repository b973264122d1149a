"""What the recordings of official code share: seeded weights, files, and stand-ins for
the libraries that official code imports."""

import importlib.util
import json
import sys
import zlib
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import torch

HERE = Path(__file__).parent
# what official models compute themselves
BUFFERS = ('attn_mask', 'relative_position_index', 'rotations', 'angle')


@cache
def by_name():
    """The modules of this folder that list ``NAMES`` of official models, with their
    ``weights(name)``, by these names."""
    files = sorted(HERE.glob('*_fixture.py'))
    modules = [import_module(file.stem) for file in files]
    return {name: module for module in modules for name in getattr(module, 'NAMES', ())}


def ours():
    """Configs of our backbones for official models, by the name of the recording: the
    entries of ``OURS`` in these modules."""
    return {
        name: module.OURS[name]
        for name, module in by_name().items()
        if name in getattr(module, 'OURS', {})
    }


def usual(key, shape, value):
    """Seeded noise as weights: outputs of layers have the size of their inputs."""
    if key.endswith('num_batches_tracked'):
        return np.int64(100)
    if key.endswith('running_var'):
        return np.exp(0.1 * value)
    if len(shape) > 1:
        return value / np.sqrt(np.prod(shape[1:]))
    return key.endswith('weight') + 0.1 * value  # norms and biases


def noise(*shape):
    """One normalized image, or tokens."""
    return torch.from_numpy(np.random.RandomState(1).standard_normal(shape)).float()


class Recording:
    """Recorded models of two files, NAME_keys.json and NAME_outputs.npz.

    Args:
        name (str): Of the files beside this one.
        scale (Callable): ``scale(key, shape, noise)`` makes weights of noise.
    """

    def __init__(self, name, scale=usual):
        self.keys, self.tensors = (
            HERE / f'{name}_{ending}' for ending in ('keys.json', 'outputs.npz')
        )
        self.scale = scale

    def shapes(self):
        """Shapes of state dicts, by model and key."""
        return json.loads(self.keys.read_text()) if self.keys.exists() else {}

    def weights(self, model, seed=None):
        """Official state dict of a recorded model."""
        seed = zlib.crc32(model.encode()) if seed is None else seed
        rng = np.random.RandomState(seed)
        state_dict = {}
        for key, shape in sorted(self.shapes()[model].items()):
            value = np.array(self.scale(key, shape, rng.standard_normal(shape)))
            value = torch.from_numpy(value)
            state_dict[key] = value.float() if value.is_floating_point() else value
        return state_dict

    def outputs(self, model, mark='/'):
        """Recorded tensors of a model, by name."""
        prefix = f'{model}{mark}'
        with np.load(self.tensors) as recorded:
            return {
                key[len(prefix) :]: torch.from_numpy(recorded[key])
                for key in recorded.files
                if key.startswith(prefix)
            }

    def write_shapes(self, models, buffers=BUFFERS):
        """Writes shapes, except of entries whose names end with ``buffers``."""
        shapes = {
            name: {
                key: list(value.shape)
                for key, value in model.state_dict().items()
                if not key.endswith(buffers)
            }
            for name, model in models.items()
        }
        text = json.dumps({**self.shapes(), **shapes})
        text = text.replace('], ', '],\n').replace('}, ', '},\n')
        self.keys.write_text(f'{text}\n')

    def write_outputs(self, model, tensors, mark='/'):
        recorded = dict(np.load(self.tensors)) if self.tensors.exists() else {}
        recorded.update((f'{model}{mark}{k}', x.numpy()) for k, x in tensors.items())
        np.savez_compressed(self.tensors, **recorded)

    @torch.no_grad()
    def write(self, models, run, image, buffers=BUFFERS):
        """Writes shapes and outputs of official models, which ``run(model, image)``
        returns by name."""
        self.write_shapes(models, buffers)
        for name, model in models.items():
            weights = self.weights(name).items()
            weights = {key: x for key, x in weights if not key.endswith(BUFFERS)}
            missing, unexpected = model.load_state_dict(weights, strict=False)
            assert not unexpected and all(key.endswith(BUFFERS) for key in missing)
            model.eval()
            self.write_outputs(name, run(model, image(name)))


def logits_and_tokens(model, x):
    """Logits of an official classifier and its tokens after the final norm; the
    outputs alone, if it has none."""
    tokens = []
    if hasattr(model, 'norm'):
        model.norm.register_forward_hook(lambda module, args, out: tokens.append(out))
    out = model(x)
    return dict(logits=out, tokens=tokens[0]) if tokens else out


def register(cls=None):
    return cls or register


class StandIns:
    """Finds modules of libraries, with nothing in them but what models need."""

    contents = dict(
        DropPath=torch.nn.Identity,
        to_2tuple=lambda side: (side, side),
        trunc_normal_=torch.nn.init.trunc_normal_,
        register_model=register,
        _cfg=dict,
        BACKBONES=SimpleNamespace(register_module=register),
        MODELS=SimpleNamespace(register_module=register),
    )

    def __init__(self, libraries):
        self.libraries = libraries

    def find_spec(self, name, path=None, target=None):
        if any(f'{name}.'.startswith(f'{library}.') for library in self.libraries):
            return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = ModuleType(spec.name)
        module.__getattr__ = self.contents.get
        return module

    def exec_module(self, module):
        pass


def stand_in(*libraries, **contents):
    """Lets stand-ins be found for libraries, and for the packages of backbones."""
    StandIns.contents.update(contents)
    own = ('official', 'timm', 'fvcore', 'mmcv', 'mmcv_custom', 'mmdet', 'mmseg')
    sys.meta_path.insert(0, StandIns((*own, *libraries)))


def import_file(path):
    """A file as a module beside the backbones of a detection library."""
    name = f'official.models.backbones.{path.stem}'
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
