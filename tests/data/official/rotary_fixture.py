"""Weights, images and recorded outputs of the official MLLA, RALA, MALA and ViT^3 code,
narrow.

``rotary_keys.json`` has names and shapes of official state dicts, without buffers: of
classifiers and of the detectors' backbones. ``rotary_outputs.npz`` has the models'
outputs with :func:`weights` and :func:`image`: a classifier's logits, every 7th value
of a backbone's four maps and of the changes that the first blocks of stages 2 and 3
make to their tokens. They were recorded on a CPU, torch 2.1.2, einops 0.8.2, by running
this file on checkouts of github.com/LeapLabTHU/MLLA at 66b6d29, github.com/qhfan/RALA
at a86314f, github.com/qhfan/MALA at 7114e63 and github.com/LeapLabTHU/ViTTT at e347758:

    python rotary_fixture.py MLLA RALA MALA VITTT

The official code runs unchanged, with stand-ins for its imports of timm, fvcore and
the detection library that it was written for. The first pass of H-ViT^3's detectors has
another scale of the loss than all others, so their second one is recorded. Numbers of
parameters of the papers' classifiers (``parameters/``) are those of the same code.
"""

import sys
from pathlib import Path

import recording

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
NAMES = (
    *('mlla_classifier', 'mlla_backbone', 'ravlt_classifier', 'ravlt_backbone'),
    *('mavit_classifier', 'mavit_backbone', 'hvittt_classifier', 'hvittt_backbone'),
    'vittt_classifier',
)
OURS = dict(vittt_classifier=dict(type='mmlinattn.ViTTT', arch=ARCHS['vittt']))
STRIDE = 7
BLOCKS = (1, 2)  # stages


def scale(key, shape, value):
    return 1 + 0.3 * value if 'gamma' in key else recording.usual(key, shape, value)


RECORDING = recording.Recording('rotary', scale)
weights, outputs = RECORDING.weights, RECORDING.outputs


def image(name):
    """One normalized image of noise, (1, 3, H, W)."""
    # some classifiers take square images alone
    square = (64, 96 if name[:2] in ('ra', 'ma') else 64)
    return recording.noise(1, 3, *((98, 139) if 'backbone' in name else square))


def thin(x):
    """The recorded part of a map, or of the tokens of a block."""
    return x.flatten()[::STRIDE]


def record_block(outs, key):
    """A hook that keeps a block's change of its tokens."""

    def hook(block, args, out):
        added = out - args[0]
        if added.dim() == 4:
            added = added.flatten(2).transpose(1, 2)
        outs[key] = thin(added)

    return hook


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


def official_models(mlla, rala, mala, vittt):
    """The recorded models by name."""
    backbones = 'mmdet/models/backbones'
    arch = ARCHS['mlla']
    of_mlla = dict(arch, embed_dim=arch['embed_dims'][0])
    del of_mlla['embed_dims']
    fours = dict(mlp_ratios=[3.5] * 4, layerscales=[True] * 4, projection=PROJECTION)
    of_rala = dict(ARCHS['ravlt'], **fours)
    of_pyramid = dict(
        dim=ARCHS['hvittt']['embed_dims'], depths=ARCHS['hvittt']['depths']
    )
    heads = dict(num_heads=ARCHS['hvittt']['num_heads'])
    of_plain = dict(embed_dim=32, depth=2, num_heads=4)
    classes = dict(num_classes=NUM_CLASSES)
    square = dict(classes, img_size=64)
    table = (
        (mlla, 'models/mlla.py', 'MLLA', of_mlla, square),
        (mlla, f'downstream/detection/{backbones}/mlla.py', 'MLLA', of_mlla),
        (rala, 'classfication/RALA.py', 'RAVLT', of_rala, classes),
        (rala, f'detection/{backbones}/RALA.py', 'GLTA', of_rala),
        (mala, 'classfication_release/model.py', 'MALA', of_rala, classes),
        (mala, f'detect/{backbones}/MALA.py', 'MALA', of_rala),
        (vittt, 'vittt/models/h_vittt.py', 'ViTTT', of_pyramid, square, heads),
        (vittt, f'detection/{backbones}/vittt.py', 'ViTTT', of_pyramid),
        (vittt, 'vittt/models/vittt.py', 'VisionTransformer', of_plain, square),
    )
    # the blocks of ViT^3 are in a file beside the models'
    recording.import_file(Path(vittt, 'vittt/models/ttt_block.py'))
    return {
        name: getattr(recording.import_file(Path(checkout, path)), kind)(
            **{key: x for options in more for key, x in options.items()}
        )
        for name, (checkout, path, kind, *more) in zip(NAMES, table)
    }


def main(*checkouts):
    from timm.layers import Mlp, PatchEmbed

    for name in [x for x in sys.modules if x.partition('.')[0] == 'timm']:
        del sys.modules[name]
    recording.stand_in(Mlp=Mlp, PatchEmbed=PatchEmbed)
    RECORDING.write(official_models(*checkouts), run, image)


if __name__ == '__main__':
    main(*sys.argv[1:])
