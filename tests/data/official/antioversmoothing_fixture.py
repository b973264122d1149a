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
import torch

sys.path.insert(0, str(Path(__file__).parent))

import recording

NAME = 'antioversmoothing'
NUM_CLASSES = 5
PLAIN = dict(embed_dims=16, num_layers=2, num_heads=2)
ARCHS = dict(
    deit=PLAIN,
    cait=dict(PLAIN, num_class_layers=2),
    swin=dict(embed_dims=8, depths=[2, 2], num_heads=[2, 4]),
)
PATCH_SIZE = 8
IMG_SIZES = dict(deit=32, cait=32, swin=112)
BUFFERS = ('attn_mask', 'relative_position_index')


def scale(key, shape, value):
    last = key.rpartition('.')[2]
    if last in BUFFERS:
        return 0 * value
    if 'norm' in key and last == 'weight':
        return 1 + 0.1 * value
    if last == 'weight':
        return value / np.sqrt(np.prod(shape[1:]))
    return value * (0.1 if last == 'bias' else 0.5)  # tokens, positions and scales


RECORDING = recording.Recording(NAME, scale)
weights, outputs = RECORDING.weights, RECORDING.outputs


def image(family):
    """One normalized image of noise, (1, 3, H, W)."""
    return recording.noise(1, 3, IMG_SIZES[family], IMG_SIZES[family])


def plain_options(family):
    arch = ARCHS[family]
    return dict(
        img_size=IMG_SIZES[family],
        patch_size=PATCH_SIZE,
        embed_dim=arch['embed_dims'],
        depth=arch['num_layers'],
        num_heads=arch['num_heads'],
        num_classes=NUM_CLASSES,
        qkv_bias=True,
        norm_layer=lambda dims: torch.nn.LayerNorm(dims, eps=1e-6),
    )


def swin_options():
    arch = ARCHS['swin']
    return dict(
        img_size=IMG_SIZES['swin'],
        embed_dim=arch['embed_dims'],
        depths=arch['depths'],
        num_heads=arch['num_heads'],
        num_classes=NUM_CLASSES,
    )


def official_models(checkout):
    """The official models by name."""
    sys.path[:0] = [str(checkout), str(Path(checkout, 'swin', 'models'))]
    models = {}
    for kind, name in (('attnscale', 'SwinAttnScale'), ('featscale', 'SwinFeatScale')):
        deit = importlib.import_module(kind).VisionTransformer
        cait = importlib.import_module(f'{kind}_cait').cait_models
        swin = getattr(importlib.import_module(f'swin_{kind}'), name)
        models[f'deit_{kind}'] = deit(**plain_options('deit'))
        models[f'cait_{kind}'] = cait(**plain_options('cait'))
        models[f'swin_{kind}'] = swin(**swin_options())
    return models


def timm_models():
    """timm's plain models by name."""
    from timm.models.cait import Cait
    from timm.models.swin_transformer import SwinTransformer
    from timm.models.vision_transformer import VisionTransformer

    return dict(
        deit_timm=VisionTransformer(**plain_options('deit')),
        cait_timm=Cait(**plain_options('cait')),
        swin_timm=SwinTransformer(**swin_options()),
    )


@torch.no_grad()
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
    models = official_models(checkout) if checkout else timm_models()
    recording.write_shapes(NAME, models)
    for name, model in models.items():
        state_dict = weights(name)
        buffers = {k: x for k, x in model.state_dict().items() if k.endswith(BUFFERS)}
        model.load_state_dict({**state_dict, **buffers})
        recorded = run(model.eval(), image(name.split('_')[0]))
        recording.write_outputs(
            NAME, {f'{name}/{key}': x for key, x in recorded.items()}
        )


if __name__ == '__main__':
    main(*sys.argv[1:])
