"""Weights, images and recorded outputs of the official MLLA and RALA code, narrow.

``rotary_keys.json`` has names and shapes of official state dicts, without buffers: of
classifiers and of the detectors' backbones. ``rotary_outputs.npz`` has the models'
outputs with :func:`weights` and :func:`image`: a classifier's logits, every 7th value
of a backbone's four maps and of the changes that the first blocks of stages 2 and 3
make to their tokens; and the number of parameters of the papers' classifiers
(``parameters/``). They were recorded on a CPU, torch 2.1.2, einops 0.8.2, by running
this file on checkouts of github.com/LeapLabTHU/MLLA at 66b6d29 and
github.com/qhfan/RALA at a86314f:

    python rotary_fixture.py MLLA RALA

The official code runs unchanged, with stand-ins for its imports of timm, fvcore and
the detection library that it was written for.
"""

import sys
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))

import recording

NAME = 'rotary'
NUM_CLASSES = 5
PROJECTION = 20
ARCHS = dict(
    mlla=dict(embed_dims=[8, 16, 32, 64], depths=[1, 1, 2, 1], num_heads=[1, 2, 4, 4]),
    ravlt=dict(
        embed_dims=[16, 32, 48, 64], depths=[1, 1, 2, 1], num_heads=[1, 2, 3, 4]
    ),
)
NAMES = ('mlla_classifier', 'mlla_backbone', 'ravlt_classifier', 'ravlt_backbone')
# MLLA's classifier takes images of one size alone
IMAGE_SHAPES = dict(
    mlla_classifier=(64, 64),
    mlla_backbone=(98, 139),
    ravlt_classifier=(64, 96),
    ravlt_backbone=(98, 139),
)
BUFFERS = ('rotations', 'angle')
STRIDE = 7
BLOCKS = (1, 2)  # stages


def scale(key, shape, value):
    if key.endswith('num_batches_tracked'):
        return np.int64(100)
    if key.endswith('running_var'):
        return np.exp(0.1 * value)
    if 'gamma' in key:
        return 1 + 0.3 * value
    if len(shape) > 1:
        return value / np.sqrt(np.prod(shape[1:]))
    return key.endswith('weight') + 0.1 * value  # norms and biases


def weights(name):
    """Official state dict of a recorded model, without buffers."""
    return recording.seeded_weights(
        recording.read_shapes(NAME)[name], zlib.crc32(name.encode()), scale
    )


def image(name):
    """One normalized image of noise, (1, 3, H, W)."""
    return recording.noise(1, 3, *IMAGE_SHAPES[name])


def outputs(name):
    """Recorded tensors of a model, by name."""
    return recording.read_outputs(NAME, f'{name}/')


def thin(x):
    """The recorded part of a map, or of the tokens of a block."""
    return x.flatten()[::STRIDE]


def official_modules(mlla, rala):
    """The official files by the name of a recording."""
    recording.stub_timm()
    recording.stub('fvcore')
    recording.stub('fvcore.nn', FlopCountAnalysis=None, flop_count_table=None)
    registry = SimpleNamespace(register_module=lambda: lambda cls: cls)
    for name in ('official', 'official.models', 'official.models.backbones', 'mmcv'):
        recording.stub(name)
    recording.stub('official.utils', get_root_logger=None)
    recording.stub('official.models.builder', BACKBONES=registry)
    recording.stub('mmcv.runner', _load_checkpoint=None)
    recording.stub('mmcv_custom', load_checkpoint=None)
    recording.stub('mmdet')
    recording.stub('mmdet.utils', get_root_logger=None)
    backbones, package = 'mmdet/models/backbones', 'official.models.backbones.'
    return dict(
        mlla_classifier=recording.import_file(Path(mlla, 'models/mlla.py')),
        mlla_backbone=recording.import_file(
            Path(mlla, 'downstream/detection', backbones, 'mlla.py'), package
        ),
        ravlt_classifier=recording.import_file(Path(rala, 'classfication/RALA.py')),
        ravlt_backbone=recording.import_file(
            Path(rala, 'detection', backbones, 'RALA.py'), package
        ),
    )


def official_models(modules):
    """The recorded models by name."""
    arch = ARCHS['mlla']
    mlla = dict(
        embed_dim=arch['embed_dims'][0],
        depths=arch['depths'],
        num_heads=arch['num_heads'],
    )
    ravlt = dict(
        ARCHS['ravlt'],
        mlp_ratios=[3.5] * 4,
        layerscales=[True] * 4,
        projection=PROJECTION,
    )
    side = IMAGE_SHAPES['mlla_classifier'][0]
    return dict(
        mlla_classifier=modules['mlla_classifier'].MLLA(
            img_size=side, num_classes=NUM_CLASSES, **mlla
        ),
        mlla_backbone=modules['mlla_backbone'].MLLA(**mlla),
        ravlt_classifier=modules['ravlt_classifier'].RAVLT(
            num_classes=NUM_CLASSES, **ravlt
        ),
        ravlt_backbone=modules['ravlt_backbone'].GLTA(**ravlt),
    )


def paper_models(modules):
    """Functions that build the papers' classifiers, by name."""
    mlla, ravlt = modules['mlla_classifier'].MLLA, modules['ravlt_classifier']
    large = dict(depths=[3, 6, 21, 6])
    return dict(
        mlla_tiny=lambda: mlla(
            embed_dim=64, depths=[2, 4, 8, 4], num_heads=[2, 4, 8, 16]
        ),
        mlla_small=lambda: mlla(embed_dim=64, num_heads=[2, 4, 8, 16], **large),
        mlla_base=lambda: mlla(embed_dim=96, num_heads=[3, 6, 12, 24], **large),
        ravlt_tiny=ravlt.RAVLT_T,
        ravlt_small=ravlt.RAVLT_S,
        ravlt_base=ravlt.RAVLT_B,
        ravlt_large=ravlt.RAVLT_L,
    )


def record_block(outs, key):
    """A hook that keeps a block's change of its tokens."""

    def hook(block, args, out):
        added = out - args[0]
        if added.dim() == 4:
            added = added.flatten(2).transpose(1, 2)
        outs[key] = thin(added)

    return hook


@torch.no_grad()
def run(model, x):
    """The recorded outputs of an official model."""
    if hasattr(model, 'head'):
        return dict(logits=model(x))
    outs = {}
    for i in BLOCKS:
        model.layers[i].blocks[0].register_forward_hook(record_block(outs, f'block{i}'))
    outs.update({f'map{i}': thin(x) for i, x in enumerate(model(x))})
    return outs


def main(mlla, rala):
    modules = official_modules(mlla, rala)
    models = official_models(modules)
    recording.write_shapes(NAME, models, BUFFERS)
    for name, model in models.items():
        model.load_state_dict(weights(name), strict=False)
        model.eval()
        found = run(model, image(name))
        recording.write_outputs(NAME, {f'{name}/{key}': x for key, x in found.items()})
    for name, make in paper_models(modules).items():
        number = torch.tensor(sum(x.numel() for x in make().parameters()))
        recording.write_outputs(NAME, {f'parameters/{name}': number})


if __name__ == '__main__':
    main(*sys.argv[1:])
