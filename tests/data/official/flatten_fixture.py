"""Weights, tokens and recorded outputs of the official FLatten code's attentions.

``flatten_outputs.npz`` has what the focused linear attentions of FLatten-Swin and
FLatten-CSWin make of :func:`weights` and :func:`tokens`. CSWin's takes queries, keys
and values, which the first projection of :func:`weights` makes, and has no projection
back. They were recorded on a CPU, torch 2.1.2, by running this file on a checkout of
github.com/LeapLabTHU/FLatten-Transformer at abdb115:

    python flatten_fixture.py CHECKOUT

The official code runs as it is, with stand-ins for what it imports of timm and einops.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import torch

OUTPUTS = Path(__file__).parent / 'flatten_outputs.npz'
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
    value = np.random.RandomState(1).standard_normal((2, SIDE**2, DIMS))
    return torch.from_numpy(value).float()


def outputs():
    """Recorded tensors by the name of the family."""
    with np.load(OUTPUTS) as recorded:
        return {key: torch.from_numpy(recorded[key]) for key in recorded.files}


def stub(name, **contents):
    sys.modules[name] = ModuleType(name)
    vars(sys.modules[name]).update(contents)


def import_official(path):
    for name in ('timm', 'timm.models', 'einops', 'einops.layers'):
        stub(name, rearrange=None)
    stub('einops.layers.torch', Rearrange=None)
    stub('timm.data', IMAGENET_DEFAULT_MEAN=None, IMAGENET_DEFAULT_STD=None)
    stub('timm.models.helpers', load_pretrained=None)
    stub('timm.models.layers', DropPath=None, to_2tuple=None, trunc_normal_=None)
    stub('timm.models.registry', register_model=None)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.FocusedLinearAttention


@torch.no_grad()
def main(checkout):
    state, x = weights(), tokens()
    swin = import_official(Path(checkout, 'models', 'flatten_swin.py'))
    swin = swin(DIMS, (SIDE, SIDE), HEADS)
    swin.load_state_dict({key: state[key] for key in swin.state_dict()})
    cswin = import_official(Path(checkout, 'models', 'flatten_cswin.py'))
    cswin = cswin(DIMS, SIDE, -1, num_heads=HEADS)
    cswin.load_state_dict({key: state[key] for key in cswin.state_dict()})
    qkv = torch.nn.functional.linear(x, state['qkv.weight'], state['qkv.bias'])
    qkv = qkv.unflatten(-1, (3, DIMS)).permute(2, 0, 1, 3)
    np.savez_compressed(OUTPUTS, swin=swin(x).numpy(), cswin=cswin(qkv).numpy())


if __name__ == '__main__':
    main(sys.argv[1])
