"""Weights, images and recorded outputs of DeiT, CaiT and Swin, in miniature.

``antioversmoothing_keys.json`` has names and shapes of the state dicts of official
models with AttnScale and FeatScale, and of timm's plain ones.
``antioversmoothing_outputs.npz`` has what these models make of :func:`weights` and
:func:`image`: logits, tokens after the final norm (CaiT: the class token, then the
patches) and Swin's tokens after its first merging. They were recorded on a CPU, torch
2.1.2, by running this file on a checkout of
github.com/VITA-Group/ViT-Anti-Oversmoothing at 989559f, with timm 0.4.12 on the import
path, and then without a checkout, with timm 1.0.15:

    python antioversmoothing_fixture.py CHECKOUT
    python antioversmoothing_fixture.py

The official code runs as it is.
"""

import importlib
import json
import sys
import zlib
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).parent
KEYS = HERE / 'antioversmoothing_keys.json'
OUTPUTS = HERE / 'antioversmoothing_outputs.npz'

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


def weights(name):
    """Official state dict of a recorded model; buffers are zero."""
    rng = np.random.RandomState(zlib.crc32(name.encode()))
    state_dict = {}
    for key, shape in sorted(json.loads(KEYS.read_text())[name].items()):
        last = key.rpartition('.')[2]
        value = rng.standard_normal(shape)
        if last in BUFFERS:
            value *= 0
        elif 'norm' in key and last == 'weight':
            value = 1 + 0.1 * value
        elif last == 'weight':
            value /= np.sqrt(np.prod(shape[1:]))
        elif last == 'bias':
            value *= 0.1
        else:  # tokens, positions and scales
            value *= 0.5
        state_dict[key] = torch.from_numpy(value).float()
    return state_dict


def image(family):
    """One normalized image of noise, (1, 3, H, W)."""
    side = IMG_SIZES[family]
    value = np.random.RandomState(1).standard_normal((1, 3, side, side))
    return torch.from_numpy(value).float()


def outputs(name):
    """Recorded tensors of a model."""
    with np.load(OUTPUTS) as recorded:
        return {
            key.rpartition('/')[2]: torch.from_numpy(recorded[key])
            for key in recorded.files
            if key.startswith(f'{name}/')
        }


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
    keys = json.loads(KEYS.read_text()) if KEYS.exists() else {}
    recorded = dict(np.load(OUTPUTS)) if OUTPUTS.exists() else {}
    models = official_models(checkout) if checkout else timm_models()
    keys.update(
        {
            name: {key: list(value.shape) for key, value in model.state_dict().items()}
            for name, model in models.items()
        }
    )
    KEYS.write_text(
        json.dumps(keys, sort_keys=True).replace('], ', '],\n').replace('}, ', '},\n')
        + '\n'
    )
    for name, model in models.items():
        known = {
            key: value
            for key, value in weights(name).items()
            if not key.endswith(BUFFERS)
        }
        model.load_state_dict({**model.state_dict(), **known})
        for key, value in run(model.eval(), image(name.split('_')[0])).items():
            recorded[f'{name}/{key}'] = value.numpy()
    np.savez_compressed(OUTPUTS, **recorded)


if __name__ == '__main__':
    main(*sys.argv[1:])
