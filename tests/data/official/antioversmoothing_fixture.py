"""Weights, images and recorded outputs of DeiT, CaiT and Swin, in miniature.

``antioversmoothing_keys.json`` has names and shapes of the state dicts of official
models with AttnScale and FeatScale, and of timm's plain ones.
``antioversmoothing_outputs.npz`` has their outputs with :func:`weights` and
:func:`image`: logits, tokens after the final norm (CaiT: the class token, then the
patches) and Swin's tokens after its first merging. They were recorded on a CPU, torch
2.1.2, by running this file on a checkout of
github.com/VITA-Group/ViT-Anti-Oversmoothing at 989559f, with timm 0.4.12 on the import
path, and then without a checkout, with timm 1.0.15:

    python antioversmoothing_fixture.py CHECKOUT
    python antioversmoothing_fixture.py

The official code runs unchanged.
"""

import importlib
import sys
from pathlib import Path

import numpy as np
import recording
import torch

NUM_CLASSES = 5
PLAIN = dict(embed_dims=16, num_layers=2, num_heads=2)
ARCHS = dict(
    deit=PLAIN,
    cait=dict(PLAIN, num_class_layers=2),
    swin=dict(embed_dims=8, depths=[2, 2], num_heads=[2, 4]),
)
PATCH_SIZE = 8
IMG_SIZES = dict(deit=32, cait=32, swin=112)


def scale(key, shape, value):
    last = key.rpartition('.')[2]
    if last in recording.BUFFERS:
        return 0 * value
    if 'norm' in key and last == 'weight':
        return 1 + 0.1 * value
    if last == 'weight':
        return value / np.sqrt(np.prod(shape[1:]))
    return value * (0.1 if last == 'bias' else 0.5)  # tokens, positions and scales


RECORDING = recording.Recording('antioversmoothing', scale)
weights, outputs = RECORDING.weights, RECORDING.outputs


def image(name):
    """One normalized image of noise, (1, 3, H, W)."""
    side = IMG_SIZES[name.partition('_')[0]]
    return recording.noise(1, 3, side, side)


def options_of(family):
    """Options of an official or timm's model."""
    arch = ARCHS[family]
    options = dict(
        img_size=IMG_SIZES[family],
        embed_dim=arch['embed_dims'],
        num_heads=arch['num_heads'],
        num_classes=NUM_CLASSES,
    )
    if family == 'swin':
        return dict(options, depths=arch['depths'])
    return dict(
        options,
        patch_size=PATCH_SIZE,
        depth=arch['num_layers'],
        qkv_bias=True,
        norm_layer=lambda dims: torch.nn.LayerNorm(dims, eps=1e-6),
    )


def official_models(checkout):
    """Classes of the official models, by name."""
    sys.path[:0] = [str(checkout), str(Path(checkout, 'swin', 'models'))]
    for kind, name in (('attnscale', 'SwinAttnScale'), ('featscale', 'SwinFeatScale')):
        yield f'deit_{kind}', importlib.import_module(kind).VisionTransformer
        yield f'cait_{kind}', importlib.import_module(f'{kind}_cait').cait_models
        yield f'swin_{kind}', getattr(importlib.import_module(f'swin_{kind}'), name)


def timm_models():
    """Classes of timm's plain models, by name."""
    from timm import models

    yield 'deit_timm', models.VisionTransformer
    yield 'cait_timm', models.Cait
    yield 'swin_timm', models.SwinTransformer


def run(model, x):
    """Logits, final tokens and Swin's merged ones of an official model."""
    recorded = {}

    def record(name):
        return lambda module, args, out: recorded.update({name: out.flatten(1, -2)})

    model.norm.register_forward_hook(record('tokens'))
    for name, module in model.named_modules():
        if name.endswith('downsample.reduction'):
            module.register_forward_hook(record('merged'))
    return {'logits': model(x), **recorded}


def main(checkout=None):
    kinds = official_models(checkout) if checkout else timm_models()
    models = {name: kind(**options_of(name.partition('_')[0])) for name, kind in kinds}
    RECORDING.write(models, run, image, buffers=())


if __name__ == '__main__':
    main(*sys.argv[1:])
