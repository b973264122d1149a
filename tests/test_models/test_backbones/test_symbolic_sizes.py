"""``torch.compile`` with symbolic sizes: expressions of sizes stay small and operators
few, because its seconds grow with them, and backbones have one graph for images of all
sizes."""

import pytest
import torch
from loading import load_module
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from mmlinattn.functional import (
    blockify,
    crop_map,
    pad_map,
    to_map,
    to_tokens,
    unblockify,
)
from mmlinattn.registry import MODELS

node_counts = load_module('benchmarks/dynamic_sizes.py').node_counts
compiles = pytest.mark.skipif(
    not hasattr(torch.compiler, 'is_exporting'), reason='not with this compiler'
)

PYRAMID = dict(embed_dims=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_heads=[1, 2, 3, 4])
PRESET = dict(embed_dims=8, depths=[1, 1, 1, 1], num_heads=[2, 2, 4, 4])
PLAIN = dict(arch=dict(embed_dims=24, num_layers=2, num_heads=3), patch_size=8)
CASES = {
    'MLLA': dict(arch=PYRAMID),
    'RAVLT': dict(arch=PYRAMID),
    'MAViT': dict(arch=PYRAMID),
    'HViTTT': dict(arch=PYRAMID),
    'VSSD': dict(arch=PYRAMID),
    'SOFT': dict(arch=PYRAMID, num_iters=2, img_size=64),
    'SOFTPlusPlus': dict(arch=PYRAMID, num_iters=2),
    'LinearSOFTPlusPlus': dict(arch=PYRAMID),
    'SwinTransformer': dict(arch=PRESET),
    'SwinTransformer-elfatt': dict(arch=PRESET, attention='elfatt'),
    'CSWinTransformer': dict(arch=PRESET),
    'ViTTT': PLAIN,
    'VisionTransformer': dict(PLAIN, img_size=64),
}
QUICK = ('MLLA',)
# SOFT's and SOFT++'s solvers depend on the number of landmarks
SEVERAL_GRAPHS = ('SOFT', 'SOFTPlusPlus')
# The largest expressions are products of two padded sides: 34 nodes in a stage of
# windows, 48 in SOFT++. With padding written as H + -H % s, one had 144, and all of a
# graph's seven thousand.
LARGEST = 50
# Operators of a block of the first stage that write a tensor; PVTv2 has 14.
OPERATORS = {
    'MLLA': 62,
    'RAVLT': 66,
    'MAViT': 66,
    'HViTTT': 104,
    'VSSD': 27,
    'LinearSOFTPlusPlus': 52,
    'SwinTransformer': 25,
    'SwinTransformer-elfatt': 36,
    'CSWinTransformer': 41,
    'VisionTransformer': 11,
}


def build(name):
    model = MODELS.build(dict(CASES[name], type=name.partition('-')[0]))
    model.init_weights()
    return model.eval()


class CountOperators(TorchDispatchMode):
    """Counts operators whose output is no view of an input."""

    def __init__(self):
        super().__init__()
        self.number = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        inputs, outputs = [
            {
                x.untyped_storage().data_ptr()
                for x in tree_flatten(values)[0]
                if isinstance(x, torch.Tensor)
            }
            for values in ((args, kwargs), out)
        ]
        self.number += not outputs <= inputs
        return out


@pytest.mark.parametrize('name', OPERATORS)
def test_few_operators(name):
    model = build(name)
    block = getattr(model, 'stages', [model])[0].blocks[0]
    hw_shape = (9, 11)
    x = torch.randn(2, 99, block.norm1.normalized_shape[0])
    with torch.no_grad(), CountOperators() as operators:
        block(x, hw_shape)
    assert operators.number <= OPERATORS[name]


def cut(x, hw_shape):
    return unblockify(blockify(x, hw_shape, 7) * 2, hw_shape, 7)


def cut_in_stripes(x, hw_shape):
    side = (None, 3)
    return unblockify(blockify(x, hw_shape, side, True) * 2, hw_shape, side, True)


def padded(x, hw_shape):
    x, padded_shape = pad_map(x, hw_shape, 7)
    return crop_map(x * 2, padded_shape, hw_shape)


@compiles
@pytest.mark.parametrize('function', (cut, cut_in_stripes, padded))
def test_whole_and_incomplete_blocks_have_one_graph(function):
    """In autograd's part of the compiler, too, which asks of each tensor whether it is
    contiguous."""
    graphs = []

    def record(graph, inputs):
        graphs.append(graph)
        return torch._dynamo.lookup_backend('aot_eager')(graph, inputs)

    def run(maps):
        hw_shape = maps.shape[2:]
        return to_map(function(to_tokens(maps), hw_shape), hw_shape)

    torch._dynamo.reset()
    compiled = torch.compile(run, backend=record, fullgraph=True, dynamic=True)
    for height, width in ((21, 42), (22, 41), (28, 40), (27, 42)):
        maps = torch.randn(2, 8, height, width)
        torch.testing.assert_close(compiled(maps), 2 * maps)
    assert len(graphs) == 1


@compiles
@pytest.mark.parametrize(
    'name',
    [pytest.param(x, marks=() if x in QUICK else pytest.mark.full) for x in CASES],
)
def test_small_expressions(name):
    model, largest = build(name), []

    def record(graph, inputs):
        largest.append(max(node_counts(graph)))
        return graph

    torch._dynamo.reset()
    compiled = torch.compile(model, backend=record, fullgraph=True, dynamic=True)
    # whole patches and windows, more than one; odd sides; another shape
    for height, width in ((448, 672), (449, 671), (460, 673)):
        x = torch.randn(2, 3, height, width)
        with torch.no_grad():
            for out, expected in zip(compiled(x), model(x)):
                torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-4)
    if name not in SEVERAL_GRAPHS:
        assert len(largest) == 1
    assert max(largest) <= LARGEST
