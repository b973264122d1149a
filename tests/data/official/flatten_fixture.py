"""Weights, tokens and recorded outputs of the official FLatten code's attentions.

``flatten_outputs.npz`` has the outputs of the focused linear attentions of FLatten-Swin
and FLatten-CSWin with :func:`weights` and :func:`tokens`. CSWin's takes queries, keys
and values, from the first projection of :func:`weights`, and has no projection back.
They were recorded on a CPU, torch 2.1.2, by running this file on a checkout of
github.com/LeapLabTHU/FLatten-Transformer at abdb115:

    python flatten_fixture.py CHECKOUT

The official code runs unchanged, with stand-ins for its imports of timm and einops.
"""

import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))

import recording

DIMS, HEADS, SIDE = 24, 4, 7
SHAPES = {
    'qkv.weight': (3 * DIMS, DIMS),
    'qkv.bias': (3 * DIMS,),
    'proj.weight': (DIMS, DIMS),
    'proj.bias': (DIMS,),
    'dwc.weight': (DIMS // HEADS, 1, 5, 5),
    'dwc.bias': (DIMS // HEADS,),
    'get_v.weight': (DIMS, 1, 3, 3),
    'get_v.bias': (DIMS,),
    'scale': (1, 1, DIMS),
    'positional_encoding': (1, SIDE**2, DIMS),
}


def weights():
    """Tensors by their official names."""
    rng = np.random.RandomState(0)
    return {
        key: torch.from_numpy(0.3 * rng.standard_normal(shape)).float()
        for key, shape in SHAPES.items()
    }


def tokens():
    """Two maps of noise, (2, SIDE * SIDE, DIMS)."""
    return recording.noise(2, SIDE**2, DIMS)


def outputs():
    """Recorded tensors by the name of the family."""
    return recording.read_outputs('flatten')


@torch.no_grad()
def main(checkout):
    recording.stub_timm()
    recording.stub('einops', rearrange=None)
    recording.stub('einops.layers')
    recording.stub('einops.layers.torch', Rearrange=None)
    state, x = weights(), tokens()
    swin = recording.import_file(Path(checkout, 'models', 'flatten_swin.py'))
    swin = swin.FocusedLinearAttention(DIMS, (SIDE, SIDE), HEADS)
    swin.load_state_dict({key: state[key] for key in swin.state_dict()})
    cswin = recording.import_file(Path(checkout, 'models', 'flatten_cswin.py'))
    cswin = cswin.FocusedLinearAttention(DIMS, SIDE, -1, num_heads=HEADS)
    cswin.load_state_dict({key: state[key] for key in cswin.state_dict()})
    qkv = torch.nn.functional.linear(x, state['qkv.weight'], state['qkv.bias'])
    qkv = qkv.unflatten(-1, (3, DIMS)).permute(2, 0, 1, 3)
    recording.write_outputs('flatten', dict(swin=swin(x), cswin=cswin(qkv)))


if __name__ == '__main__':
    main(sys.argv[1])
