"""Weights, images and recorded outputs of the official CSWin code, in miniature.

``cswin_keys.json`` has names and shapes of official state dicts: of CSWin-T's
classifier (``tiny``) and of miniatures, a classifier and a segmentor's backbone.
``cswin_outputs.npz`` has what the miniatures make of :func:`weights` and
:func:`image`: the classifier's logits and tokens after the final norm, the four maps
of the backbone. They were recorded on a CPU, torch 2.1.2, einops 0.8.2, by running
this file on a checkout of github.com/microsoft/CSWin-Transformer at f111ae2:

    python cswin_fixture.py CHECKOUT

The official code runs as it is, with stand-ins for what it imports of timm and of
the segmentation library that it was written for.
"""

import importlib.util
import json
import sys
import zlib
from pathlib import Path
from types import ModuleType

import numpy as np
import torch

HERE = Path(__file__).parent
KEYS = HERE / 'cswin_keys.json'
OUTPUTS = HERE / 'cswin_outputs.npz'

NUM_CLASSES = 5
ARCH = dict(embed_dims=8, depths=[1, 1, 2, 1], num_heads=[2, 4, 8, 16])
# the classifier takes squares of whole stripes alone, the backbone pads
IMAGE_SHAPES = dict(classifier=(224, 224), backbone=(64, 92))


def weights(name):
    """Official state dict of a recorded model."""
    rng = np.random.RandomState(zlib.crc32(name.encode()))
    state_dict = {}
    for key, shape in sorted(json.loads(KEYS.read_text())[name].items()):
        value = rng.standard_normal(shape)
        if len(shape) > 1:
            value /= np.sqrt(np.prod(shape[1:]))
        else:  # norms and biases
            value = key.endswith('weight') + 0.1 * value
        state_dict[key] = torch.from_numpy(value).float()
    return state_dict


def image(name):
    """One normalized image of noise, (1, 3, H, W)."""
    value = np.random.RandomState(1).standard_normal((1, 3, *IMAGE_SHAPES[name]))
    return torch.from_numpy(value).float()


def outputs(name):
    """Recorded tensors of a model, by name."""
    with np.load(OUTPUTS) as recorded:
        return {
            key.rpartition('/')[2]: torch.from_numpy(recorded[key])
            for key in recorded.files
            if key.startswith(f'{name}/')
        }


def stub(name, **contents):
    sys.modules[name] = ModuleType(name)
    vars(sys.modules[name]).update(contents)


def stub_imports():
    """What the official modules import and these models don't need, or hardly."""
    for name in ('timm', 'timm.models', 'mmseg', 'official'):
        stub(name)
    stub('timm.data', IMAGENET_DEFAULT_MEAN=None, IMAGENET_DEFAULT_STD=None)
    stub('timm.models.helpers', load_pretrained=None)
    stub(
        'timm.models.layers',
        DropPath=None,
        to_2tuple=None,
        trunc_normal_=torch.nn.init.trunc_normal_,
    )
    stub('timm.models.registry', register_model=lambda function: function)
    stub('timm.models.resnet', resnet26d=None, resnet50d=None)
    stub('mmcv_custom', load_checkpoint=None)
    stub('mmseg.utils', get_root_logger=None)
    registry = ModuleType('registry')
    registry.register_module = lambda: lambda cls: cls
    stub('official.builder', BACKBONES=registry)
    stub('official.models')


def import_official(path):
    """A file of the checkout as a module of a package that has a builder."""
    spec = importlib.util.spec_from_file_location(f'official.models.{path.stem}', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@torch.no_grad()
def run(model, x):
    """What is recorded of an official model."""
    tokens = []
    if hasattr(model, 'norm'):
        model.norm.register_forward_hook(lambda module, args, out: tokens.append(out))
    out = model(x)
    if tokens:
        return dict(logits=out, tokens=tokens[0])
    return {f'map{i}': x for i, x in enumerate(out)}


def main(checkout):
    stub_imports()
    classification = import_official(Path(checkout, 'models', 'cswin.py'))
    segmentation = import_official(
        Path(checkout, 'segmentation', 'backbone', 'cswin_transformer.py')
    )
    options = dict(
        patch_size=4,
        embed_dim=ARCH['embed_dims'],
        depth=ARCH['depths'],
        num_heads=ARCH['num_heads'],
        split_size=[1, 2, 7, 7],
    )
    models = dict(
        classifier=classification.CSWinTransformer(num_classes=NUM_CLASSES, **options),
        backbone=segmentation.CSWin(**options),
    )
    keys = {
        name: {key: list(value.shape) for key, value in model.state_dict().items()}
        for name, model in [
            ('tiny', classification.CSWin_64_12211_tiny_224()),
            *models.items(),
        ]
    }
    KEYS.write_text(
        json.dumps(keys).replace('], ', '],\n').replace('}, ', '},\n') + '\n'
    )
    recorded = {}
    for name, model in models.items():
        model.load_state_dict(weights(name))
        for key, value in run(model.eval(), image(name)).items():
            recorded[f'{name}/{key}'] = value.numpy()
    np.savez_compressed(OUTPUTS, **recorded)


if __name__ == '__main__':
    main(sys.argv[1])
