"""Weights, images and recorded outputs of the official VSSD code, narrow.

``vssd_keys.json`` has names and shapes of official state dicts: of a classifier and of
the backbone of detectors and segmentors. ``vssd_outputs.npz`` has the models' outputs
with :func:`weights` and :func:`image`: a classifier's logits and a backbone's four
maps, and the numbers of parameters of the papers' classifiers (``parameters/``). They
were recorded on a CPU, torch 2.1.2, einops 0.8.2, by running this file on a checkout of
github.com/YuHengsss/VSSD at 87b753b:

    python vssd_fixture.py VSSD

The official code runs unchanged, with stand-ins for its imports of timm, fvcore and
mamba_ssm, whose functions these models never call.
"""

import sys
from pathlib import Path

import recording
import torch

NUM_CLASSES = 5
# heads of 16 values, and as many channels of queries and keys
ARCH = dict(embed_dims=8, depths=[1, 1, 2, 1], num_heads=[1, 2, 4, 8])
STATE_DIMS = 16
NAMES = ('vssd_classifier', 'vssd_backbone')
OURS = {name: dict(type='mmlinattn.VSSD', arch=ARCH) for name in NAMES}
# the official configs'
PAPER = dict(
    micro=dict(embed_dim=48, depths=[2, 2, 8, 4], num_heads=[2, 4, 8, 16], d_state=48),
    tiny=dict(embed_dim=64, depths=[2, 4, 8, 4], num_heads=[2, 4, 8, 16]),
    small=dict(embed_dim=64, depths=[3, 4, 21, 5], num_heads=[2, 4, 8, 16]),
    base=dict(embed_dim=96, depths=[3, 4, 21, 5], num_heads=[3, 6, 12, 24]),
)


def scale(key, shape, value):
    """Steps and decays as those that trainings start from, and a bit further."""
    starts = dict(A_log=1.5 + 0.7 * value, dt_bias=value - 4, D=1 + 0.3 * value)
    name = key.rpartition('.')[2]
    return starts[name] if name in starts else recording.usual(key, shape, value)


RECORDING = recording.Recording('vssd', scale)
weights, outputs = RECORDING.weights, RECORDING.outputs


def image(name):
    """One normalized image of noise, (1, 3, H, W)."""
    # the classifier takes whole patches alone
    return recording.noise(1, 3, *((66, 99) if 'backbone' in name else (64, 96)))


def run(model, x):
    """The recorded outputs of an official model."""
    if hasattr(model, 'head'):
        return dict(logits=model(x))
    return {f'map{i}': out for i, out in enumerate(model(x))}


def main(checkout):
    recording.stand_in('mamba_ssm')
    folder = Path(checkout, 'classification/models')
    # the model imports the first file from beside it
    recording.import_file(folder / 'mamba_util.py')
    official = recording.import_file(folder / 'mamba2.py')
    arch = dict(ARCH, d_state=STATE_DIMS)
    arch['embed_dim'] = arch.pop('embed_dims')
    models = (
        official.VMAMBA2(num_classes=NUM_CLASSES, **arch),
        official.Backbone_VMAMBA2(**arch),
    )
    RECORDING.write(dict(zip(NAMES, models)), run, image)
    numbers = {
        name: sum(x.numel() for x in official.VMAMBA2(**options).parameters())
        for name, options in PAPER.items()
    }
    numbers = {name: torch.tensor(number) for name, number in numbers.items()}
    RECORDING.write_outputs('parameters', numbers)


if __name__ == '__main__':
    main(*sys.argv[1:])
