"""Seconds to compile miniatures of backbones with ``torch.compile(dynamic=True)``, for
each of a few sizes of images, beside timm's pvt_v2 with one block in a stage.

Prints a row of a table for each model: CPU seconds for one block, operators for one
block, nodes of the expressions of sizes in the last graph, number of graphs and largest
relative error. Stem and merging are included.

    python benchmarks/dynamic_sizes.py --models mlla cswin --backend aot_eager
"""

import argparse
import os
from typing import Any

import torch
from sympy import preorder_traversal
from torch import nn

from mmlinattn.registry import MODELS

DEPTHS = [1, 1, 1, 1]
HEADS = dict(depths=DEPTHS, num_heads=[2, 4, 8, 16])
PYRAMID = dict(embed_dims=[64, 128, 256, 512], **HEADS)
PRESET = dict(embed_dims=64, **HEADS)
PLAIN = dict(embed_dims=192, num_layers=4, num_heads=6)
CONFIGS: dict[str, dict[str, Any]] = {
    'mlla': dict(type='MLLA', arch=PYRAMID),
    'ravlt': dict(type='RAVLT', arch=PYRAMID),
    'mavit': dict(type='MAViT', arch=PYRAMID),
    'h-vit3': dict(type='HViTTT', arch=PYRAMID),
    'vssd': dict(type='VSSD', arch=PYRAMID),
    'soft': dict(type='SOFT', arch=PYRAMID),
    'softpp': dict(type='SOFTPlusPlus', arch=PYRAMID),
    'softpp-linear': dict(type='LinearSOFTPlusPlus', arch=PYRAMID),
    'swin': dict(type='SwinTransformer', arch=PRESET),
    'swin-elfatt': dict(type='SwinTransformer', arch=PRESET, attention='elfatt'),
    'swin-agent': dict(type='SwinTransformer', arch=PRESET, attention='agent'),
    'cswin': dict(type='CSWinTransformer', arch=PRESET),
    'deit': dict(type='VisionTransformer', arch=PLAIN),
    'cait': dict(type='CaiT', arch=dict(PLAIN, num_class_layers=1)),
    'vit3': dict(type='ViTTT', arch=PLAIN),
}


def build(name: str) -> nn.Module:
    """Return a model of four blocks, in eval mode."""
    if name != 'pvt_v2':
        return MODELS.build(CONFIGS[name]).eval()
    from timm.models.pvt_v2 import PyramidVisionTransformerV2

    sizes: Any = dict(embed_dims=(32, 64, 160, 256), num_heads=(1, 2, 5, 8))
    return PyramidVisionTransformerV2(depths=tuple(DEPTHS), **sizes).eval()


def cpu_seconds() -> float:
    """CPU time of this process and its children, which compile C++."""
    times = os.times()
    return sum(times[:4])


def node_counts(graph: torch.fx.GraphModule) -> list[int]:
    """Return nodes of each of the different expressions of sizes and strides in a
    graph."""
    expressions = set()
    for node in graph.graph.nodes:
        tensor = node.meta.get('example_value')
        if isinstance(tensor, torch.Tensor):
            sizes = (*tensor.shape, *tensor.stride())
            expressions |= {x.node.expr for x in sizes if isinstance(x, torch.SymInt)}
    return [sum(1 for _ in preorder_traversal(x)) for x in expressions]


def warm_up(backend: str) -> None:
    """Compile a layer, so that no model pays for the compiler's imports."""
    torch.compile(nn.Linear(8, 8), backend=backend, dynamic=True)(torch.rand(2, 8))


def measure(name: str, backend: str, sizes: list[tuple[int, int]]) -> str:
    """Return the row of a model."""
    torch._dynamo.reset()
    model, graphs, seconds, error = build(name), [], [], 0.0

    def record(graph: torch.fx.GraphModule, inputs: list) -> Any:
        calls = [node for node in graph.graph.nodes if node.op.startswith('call')]
        graphs.append((len(calls) // sum(DEPTHS), sum(node_counts(graph))))
        return torch._dynamo.lookup_backend(backend)(graph, inputs)

    compiled = torch.compile(model, backend=record, dynamic=True, fullgraph=True)
    for height, width in sizes:
        x = torch.rand(2, 3, height, width)
        start = cpu_seconds()
        outs = compiled(x)
        seconds.append(f'{(cpu_seconds() - start) / sum(DEPTHS):.1f}')
        for out, expected in zip(outs, model(x)):
            difference = (out - expected).abs().max() / expected.abs().max()
            error = max(error, float(difference))
    columns = [name, *seconds, *graphs[-1], len(graphs), f'{error:.0e}']
    return f'| {" | ".join(map(str, columns))} |'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--models', nargs='+', default=['pvt_v2', *CONFIGS])
    parser.add_argument('--backend', default='aot_eager')
    parser.add_argument('--sizes', nargs='+', default=['224x224', '256x320', '250x333'])
    args = parser.parse_args()
    # no pool of processes, which a reset closes
    os.environ['TORCHINDUCTOR_COMPILE_THREADS'] = '1'
    sizes = [(int(h), int(w)) for h, w in (size.split('x') for size in args.sizes)]
    headings = ['model', *args.sizes, 'operators', 'nodes', 'graphs', 'error']
    print(f'| {" | ".join(headings)} |\n|{"---|" * len(headings)}')
    with torch.no_grad():
        warm_up(args.backend)
        for name in args.models:
            print(measure(name, args.backend, sizes), flush=True)


if __name__ == '__main__':
    main()
