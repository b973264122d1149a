"""Weights, tokens and recorded outputs of NaLaFormer's official attention, narrow.

``nalaformer_keys.json`` has names and shapes of its state dict, and
``nalaformer_outputs.npz`` its output for :func:`tokens` with :func:`weights`. They were
recorded on a CPU, torch 2.1.2, by running this file on
github.com/ZacharyMeng/NaLaFormer at 1f1c10a:

    python nalaformer_fixture.py NaLaFormer

The official code runs unchanged, with stand-ins for its imports of timm.
"""

import sys
from pathlib import Path

import recording

NAME = 'attention'
# heads of 12 channels: three pairs for rows, and as many for columns
DIMS, HEADS, HW_SHAPE = 24, 2, (5, 7)
RECORDING = recording.Recording('nalaformer')


def weights():
    return RECORDING.weights(NAME)


def tokens():
    """(B, N, C)."""
    height, width = HW_SHAPE
    return recording.noise(2, height * width, DIMS)


def output():
    """The recorded tokens, (B, N, C)."""
    return RECORDING.outputs(NAME)['tokens']


def run(model, x):
    sines_and_cosines = model.rotary(HW_SHAPE)
    maps = x.transpose(1, 2).unflatten(-1, HW_SHAPE)
    out = model(maps, *sines_and_cosines)
    return dict(tokens=out.flatten(2).transpose(1, 2).contiguous())


def main(checkout):
    recording.stand_in()
    official = recording.import_file(Path(checkout, 'NaLaformer/NALA.py'))
    model = official.NormAwareLinearAttn(DIMS, HEADS)
    rotary = official.RoPE(DIMS, HEADS)
    # a function, and so no part of the state dict
    model.rotary = lambda shape: rotary(shape)
    RECORDING.write({NAME: model}, run, lambda name: tokens())


if __name__ == '__main__':
    main(*sys.argv[1:])
