"""Weights, images and recorded outputs of the official InLine and PolaFormer code.

``inline_keys.json`` has names and shapes of state dicts, without buffers, of narrow
classifiers and of the attention of InLine-DeiT. ``inline_outputs.npz`` has their
outputs with :func:`weights` and :func:`image`, a classifier's logits and tokens after
the final norm; and the number of parameters of the papers' classifiers
(``parameters/``). They were recorded on a CPU, torch 2.1.2, einops 0.8.2, by running
this file on checkouts of github.com/LeapLabTHU/InLine at e463a6f and
github.com/ZacharyMeng/PolaFormer at 44cdd39:

    python inline_fixture.py INLINE POLAFORMER

The official code runs unchanged, with stand-ins for its imports of timm.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import recording

NAME = 'inline'
NUM_CLASSES = 5
ARCHS = dict(
    swin=dict(embed_dims=8, depths=[1, 2, 2, 1], num_heads=[1, 2, 4, 8]),
    cswin=dict(embed_dims=8, depths=[1, 2, 1, 1], num_heads=[2, 4, 8, 16]),
)
NAMES = ('inline_swin', 'inline_cswin', 'polaformer_swin')
DIMS, HEADS, SIDE = 24, 4, 7  # of the attention with a class token, inline_deit


def scale(key, shape, value):
    if 'norm' in key and key.endswith('weight'):
        return 1 + 0.1 * value
    if key.endswith(('bias_table', 'positional_encoding', 'scale', 'power')):
        return 0.5 * value
    return value / np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 0.1 * value


RECORDING = recording.Recording(NAME, scale)
weights, outputs = RECORDING.weights, RECORDING.outputs


def image(name):
    """One normalized image of noise; two rows of tokens for the attention."""
    if name == 'inline_deit':
        return recording.noise(2, 1 + SIDE**2, DIMS)
    return recording.noise(1, 3, 224, 224)


def official_models(inline, polaformer):
    """The official modules, and a function that builds a classifier, by its name."""
    recording.stub_timm()
    for name in ('PatchEmbed', 'Mlp', 'lecun_normal_'):
        setattr(sys.modules['timm.models.layers'], name, None)
    for name in ('build_model_with_cfg', 'named_apply', 'adapt_input_conv'):
        setattr(sys.modules['timm.models.helpers'], name, None)
    sys.modules['timm.data'].IMAGENET_INCEPTION_MEAN = None
    sys.modules['timm.data'].IMAGENET_INCEPTION_STD = None
    modules = {
        name: recording.import_file(Path(checkout, f'models/{file}.py'))
        for name, checkout, file in (
            ('inline_swin', inline, 'inline_swin'),
            ('inline_cswin', inline, 'inline_cswin'),
            ('inline_deit', inline, 'inline_deit'),
            ('polaformer_swin', polaformer, 'pola_swin'),
        )
    }

    def build(name, arch, attn_type, num_classes):
        options = dict(
            embed_dim=arch['embed_dims'],
            num_heads=arch['num_heads'],
            num_classes=num_classes,
            attn_type=attn_type,
        )
        if name == 'inline_cswin':
            return modules[name].CSWinTransformer(
                depth=arch['depths'], la_split_size='56-28-14-7', **options
            )
        kind = 'InLineSwin' if name == 'inline_swin' else 'PolaSwinTransformer'
        return getattr(modules[name], kind)(
            depths=arch['depths'], window_size=56, **options
        )

    return modules, build


def run(model, x):
    """The recorded outputs of an official model."""
    outs = recording.logits_and_tokens(model, x)
    return outs if isinstance(outs, dict) else dict(tokens=outs)


SWINS, CSWINS = recording.SWINS, recording.CSWINS
# their names of attentions
TYPES = dict(
    inline_swin=dict(tiny='IIIS', small='IISS', base='IIMS2'),
    inline_cswin=dict.fromkeys(CSWINS, 'IISS'),
    polaformer_swin=dict.fromkeys(SWINS, 'LLSS'),
)


def main(inline, polaformer):
    modules, build = official_models(inline, polaformer)
    attention = modules['inline_deit'].InLineAttention(DIMS, HEADS, qkv_bias=True)
    recorded = dict(inline_deit=attention)
    for name in NAMES:
        arch = ARCHS[name.partition('_')[2]]
        recorded[name] = build(name, arch, TYPES[name]['tiny'], NUM_CLASSES)
    buffers = 'attn_mask', 'relative_position_index'
    RECORDING.write(recorded, run, image, buffers)
    RECORDING.write_sizes(
        (f'{name}_{size}', build(name, archs[size], attn_type, 1000))
        for name, types in TYPES.items()
        for archs in [CSWINS if 'cswin' in name else SWINS]
        for size, attn_type in types.items()
    )


if __name__ == '__main__':
    main(*sys.argv[1:])
