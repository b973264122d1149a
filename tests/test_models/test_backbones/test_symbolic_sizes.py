"""``torch.compile`` with symbolic sizes: expressions of sizes stay small, because its
seconds grow with them, and most backbones have one graph for images of all sizes."""

import pytest
import torch
from loading import load_module

from mmlinattn.registry import MODELS

node_counts = load_module('benchmarks/dynamic_sizes.py').node_counts
pytestmark = pytest.mark.skipif(
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
# PyTorch compares strides of padded windows with those of the map
ONE_GRAPH = ('MLLA', 'RAVLT', 'MAViT', 'LinearSOFTPlusPlus')
# The largest expressions are products of two padded sides: 34 nodes in a stage of
# windows, 48 in SOFT++. With padding written as H + -H % s, one had 144, and all of a
# graph's seven thousand.
LARGEST = 50


@pytest.mark.parametrize(
    'name',
    [pytest.param(x, marks=() if x in QUICK else pytest.mark.full) for x in CASES],
)
def test_small_expressions(name):
    model = MODELS.build(dict(CASES[name], type=name.partition('-')[0]))
    model.init_weights()
    model.eval()
    largest = []

    def record(graph, inputs):
        largest.append(max(node_counts(graph)))
        return graph

    torch._dynamo.reset()
    compiled = torch.compile(model, backend=record, fullgraph=True, dynamic=True)
    # whole patches and windows, odd sides, another shape
    for height, width in ((224, 448), (225, 447), (260, 449)):
        x = torch.randn(2, 3, height, width)
        with torch.no_grad():
            for out, expected in zip(compiled(x), model(x)):
                torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-4)
    if name in ONE_GRAPH:
        assert len(largest) == 1
    assert max(largest) <= LARGEST
