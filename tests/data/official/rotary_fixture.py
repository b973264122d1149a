"""Weights, images and recorded outputs of the official MLLA, RALA, MALA and ViT^3 code,
narrow.

``rotary_keys.json`` has names and shapes of official state dicts, without buffers: of
classifiers and of the detectors' backbones. ``rotary_outputs.npz`` has the models'
outputs with :func:`weights` and :func:`image`: a classifier's logits, every 7th value
of a backbone's four maps and of the changes that the first blocks of stages 2 and 3
make to their tokens; and the number of parameters of the papers' classifiers
(``parameters/``). They were recorded on a CPU, torch 2.1.2, einops 0.8.2, by running
this file on checkouts of github.com/LeapLabTHU/MLLA at 66b6d29, github.com/qhfan/RALA
at a86314f, github.com/qhfan/MALA at 7114e63 and github.com/LeapLabTHU/ViTTT at e347758:

    python rotary_fixture.py mlla=MLLA ravlt=RALA mavit=MALA hvittt=ViTTT vittt=ViTTT

The official code runs unchanged, with stand-ins for its imports of timm, fvcore and
the detection library that it was written for. The first pass of H-ViT^3's detectors has
another scale of the loss than all others, so their second one is recorded.
"""

import sys
from pathlib import Path

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
    # its detectors have heads of 32 channels
    hvittt=dict(
        embed_dims=[32, 32, 64, 64], depths=[1, 1, 2, 1], num_heads=[1, 1, 2, 2]
    ),
    vittt=dict(embed_dims=32, num_layers=2, num_heads=4),
)
ARCHS['mavit'] = ARCHS['ravlt']
PYRAMIDS = ('mlla', 'ravlt', 'mavit', 'hvittt')
NAMES = (
    *(f'{family}_{kind}' for family in PYRAMIDS for kind in ('classifier', 'backbone')),
    'vittt_classifier',
)
# some classifiers take square images alone
IMAGE_SHAPES = {
    name: (98, 139)
    if name.endswith('backbone')
    else (64, 96 if name[:2] in ('ra', 'ma') else 64)
    for name in NAMES
}
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


RECORDING = recording.Recording(NAME, scale)
weights, outputs = RECORDING.weights, RECORDING.outputs


def image(name):
    """One normalized image of noise, (1, 3, H, W)."""
    return recording.noise(1, 3, *IMAGE_SHAPES[name])


def thin(x):
    """The recorded part of a map, or of the tokens of a block."""
    return x.flatten()[::STRIDE]


def official_modules(mlla='', ravlt='', mavit='', hvittt='', vittt=''):
    """The official files of checkouts, by the name of a recording."""
    from timm.layers import Mlp, PatchEmbed

    recording.stub_timm()
    vars(sys.modules['timm.models.layers']).update(
        Mlp=Mlp, PatchEmbed=PatchEmbed, lecun_normal_=None
    )
    vars(sys.modules['timm.data']).update(
        IMAGENET_INCEPTION_MEAN=None, IMAGENET_INCEPTION_STD=None
    )
    vars(sys.modules['timm.models.helpers']).update(
        build_model_with_cfg=None, named_apply=None, adapt_input_conv=None
    )
    recording.stub('fvcore')
    recording.stub('fvcore.nn', FlopCountAnalysis=None, flop_count_table=None)
    registry = recording.stub_backbones(lambda: lambda cls: cls)
    recording.stub('mmcv_custom', load_checkpoint=None)
    recording.stub('mmdet')
    recording.stub('mmdet.utils', get_root_logger=None)
    recording.stub('mmdet.registry', MODELS=registry)
    backbones, package = 'mmdet/models/backbones', 'official.models.backbones.'
    files = dict(
        mlla_classifier=Path(mlla, 'models/mlla.py'),
        mlla_backbone=Path(mlla, 'downstream/detection', backbones, 'mlla.py'),
        ravlt_classifier=Path(ravlt, 'classfication/RALA.py'),
        ravlt_backbone=Path(ravlt, 'detection', backbones, 'RALA.py'),
        mavit_classifier=Path(mavit, 'classfication_release/model.py'),
        mavit_backbone=Path(mavit, 'detect', backbones, 'MALA.py'),
        hvittt_classifier=Path(hvittt, 'vittt/models/h_vittt.py'),
        hvittt_backbone=Path(hvittt, 'detection', backbones, 'vittt.py'),
        vittt_classifier=Path(vittt, 'vittt/models/vittt.py'),
    )
    # the blocks of ViT^3 are in a file beside the models'
    block = Path(hvittt or vittt, 'vittt/models/ttt_block.py')
    if block.exists():
        sys.modules[f'{package}ttt_block'] = recording.import_file(block, package)
    return {
        name: recording.import_file(path, package)
        for name, path in files.items()
        if path.exists()
    }


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
    arch = ARCHS['hvittt']
    hvittt = dict(dim=arch['embed_dims'], depths=arch['depths'])
    arch = ARCHS['vittt']
    vittt = dict(
        embed_dim=arch['embed_dims'],
        depth=arch['num_layers'],
        num_heads=arch['num_heads'],
    )
    square = dict(num_classes=NUM_CLASSES, img_size=64)
    options = dict(
        mlla_classifier=('MLLA', mlla, square),
        mlla_backbone=('MLLA', mlla),
        ravlt_classifier=('RAVLT', ravlt, dict(num_classes=NUM_CLASSES)),
        ravlt_backbone=('GLTA', ravlt),
        mavit_classifier=('MALA', ravlt, dict(num_classes=NUM_CLASSES)),
        mavit_backbone=('MALA', ravlt),
        hvittt_classifier=(
            'ViTTT',
            hvittt,
            dict(square, num_heads=ARCHS['hvittt']['num_heads']),
        ),
        hvittt_backbone=('ViTTT', hvittt),
        vittt_classifier=('VisionTransformer', vittt, square),
    )
    return {
        name: getattr(module, options[name][0])(
            **{key: x for part in options[name][1:] for key, x in part.items()}
        )
        for name, module in modules.items()
    }


def paper_models(modules):
    """Functions that build the papers' classifiers, by name."""
    sizes = dict(
        ravlt='RAVLT_T RAVLT_S RAVLT_B RAVLT_L',
        mavit='MALA_T MALA_S MALA_B MALA_L',
        hvittt='h_vittt_tiny h_vittt_small h_vittt_base',
    )
    found = {
        f'{family}_{size}': getattr(modules[f'{family}_classifier'], name)
        for family, names in sizes.items()
        if f'{family}_classifier' in modules
        for size, name in zip(('tiny', 'small', 'base', 'large'), names.split())
    }
    if 'mlla_classifier' in modules:
        mlla, large = modules['mlla_classifier'].MLLA, dict(depths=[3, 6, 21, 6])
        found |= dict(
            mlla_tiny=lambda: mlla(
                embed_dim=64, depths=[2, 4, 8, 4], num_heads=[2, 4, 8, 16]
            ),
            mlla_small=lambda: mlla(embed_dim=64, num_heads=[2, 4, 8, 16], **large),
            mlla_base=lambda: mlla(embed_dim=96, num_heads=[3, 6, 12, 24], **large),
        )
    if 'vittt_classifier' in modules:
        plain = modules['vittt_classifier'].VisionTransformer
        found |= dict(
            vittt_tiny=lambda: plain(embed_dim=192, num_heads=6, qkv_bias=True),
            vittt_small=lambda: plain(embed_dim=384, num_heads=6, qkv_bias=True),
            vittt_base=lambda: plain(embed_dim=768, num_heads=12, qkv_bias=True),
        )
    return found


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
    model(x)
    for i in BLOCKS:
        model.layers[i].blocks[0].register_forward_hook(record_block(outs, f'block{i}'))
    outs.update({f'map{i}': thin(x) for i, x in enumerate(model(x))})
    return outs


def main(*repositories):
    modules = official_modules(**dict(x.split('=') for x in repositories))
    RECORDING.write(official_models(modules), run, image, BUFFERS)
    makers = paper_models(modules).items()
    RECORDING.write_sizes((name, make()) for name, make in makers)


if __name__ == '__main__':
    main(*sys.argv[1:])
