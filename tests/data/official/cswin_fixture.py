"""Weights, images and recorded outputs of the official CSWin code, in miniature.

``cswin_keys.json`` has names and shapes of official state dicts: of CSWin-T's
classifier (``tiny``) and of miniatures, a classifier and a segmentor's backbone.
``cswin_outputs.npz`` has the miniatures' outputs with :func:`weights` and
:func:`image`: the classifier's logits and tokens after the final norm, the four maps
of the backbone. They were recorded on a CPU, torch 2.1.2, einops 0.8.2, by running
this file on a checkout of github.com/microsoft/CSWin-Transformer at f111ae2:

    python cswin_fixture.py CHECKOUT

The official code runs unchanged, with stand-ins for its imports of timm and of the
segmentation library that it was written for.
"""

import sys
from pathlib import Path

import recording

NUM_CLASSES = 5
ARCH = dict(embed_dims=8, depths=[1, 1, 2, 1], num_heads=[2, 4, 8, 16])
# the classifier takes squares of whole stripes alone, the backbone pads
IMAGE_SHAPES = dict(classifier=(224, 224), backbone=(64, 92))
RECORDING = recording.Recording('cswin')
weights, outputs = RECORDING.weights, RECORDING.outputs


def image(name):
    """One normalized image of noise, (1, 3, H, W)."""
    return recording.noise(1, 3, *IMAGE_SHAPES[name])


def run(model, x):
    """The recorded outputs of an official model."""
    outs = recording.logits_and_tokens(model, x)
    return (
        outs if isinstance(outs, dict) else {f'map{i}': x for i, x in enumerate(outs)}
    )


def main(checkout):
    recording.stand_in()
    files = ('models/cswin.py', 'segmentation/backbone/cswin_transformer.py')
    classification, segmentation = (
        recording.import_file(Path(checkout, path)) for path in files
    )
    options = dict(
        patch_size=4,
        embed_dim=ARCH['embed_dims'],
        depth=ARCH['depths'],
        num_heads=ARCH['num_heads'],
        split_size=[1, 2, 7, 7],
    )
    RECORDING.write_shapes(dict(tiny=classification.CSWin_64_12211_tiny_224()))
    models = dict(
        classifier=classification.CSWinTransformer(num_classes=NUM_CLASSES, **options),
        backbone=segmentation.CSWin(**options),
    )
    RECORDING.write(models, run, image)


if __name__ == '__main__':
    main(sys.argv[1])
