"""The benchmarks' machinery; what they measure is not asserted."""
import subprocess
import sys
from pathlib import Path

import pytest
import torch

BENCHMARKS = Path(__file__).resolve().parents[1] / 'benchmarks'


@pytest.fixture
def modules(monkeypatch):
    """The benchmarks' modules, which are found beside the runner."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import registry
    import run
    import timing
    return registry, run, timing


def test_every_variant_can_be_built(modules):
    registry, _, _ = modules
    for suite in registry.SUITES.values():
        for case in suite():
            with torch.device('meta'):
                sizes = [
                    sum(p.numel() for p in build().parameters())
                    for build in case.variants.values()
                ]
            assert sizes[0] == min(sizes) > 1e6


def test_scaling_vectors_are_drawn(modules):
    registry, _, _ = modules
    build = registry.backbone(
        type='VisionTransformer',
        arch=dict(embed_dims=8, num_layers=1, num_heads=2),
        attn_scale=True,
        feat_scale=True)
    assert not build().blocks[0].attn.omega.any()
    block = registry.scaled(build)().blocks[0]
    assert block.attn.omega.all() and block.feat_scale.dc_scale.all()


def test_variants_take_turns(modules):
    _, _, timing = modules
    calls = []
    results = timing.measure(
        dict(a='a', b='b', c='c'), torch.zeros(1),
        lambda module, x: calls.append(module), 3)
    assert ''.join(calls) == 'abc' + 'abc' + 'bca' + 'cab'
    assert results['a'].ratios == [1, 1, 1]
    assert all(len(result.seconds) == 3 for result in results.values())


def test_table_of_a_case(modules):
    registry, run, _ = modules
    case = registry.Case('linear', {
        'one': lambda: Rows(4),
        'two': lambda: Rows(4)
    }, (1, 3, 5, 4))
    rows = run.run_case(case, torch.device('cpu'), 2)
    assert [(row['step'], row['variant']) for row in rows] == [
        (step, name) for step in ('forward', 'forward+backward')
        for name in ('one', 'two')
    ]
    lines = run.table(rows).splitlines()
    assert len(lines) == 6 and lines[2].startswith('| linear | 1×3×5×4 | forward')


class Rows(torch.nn.Linear):
    """A linear layer with a backbone's output."""

    def __init__(self, dims):
        super().__init__(dims, dims)

    def forward(self, x):
        return (super().forward(x), )


@pytest.mark.parametrize('options, message', [
    (['--suite', 'none'], 'invalid choice'),
    (['--suite', 'antioversmoothing', '--rounds', '1'], '--rounds must be at'),
])
def test_bad_input(options, message):
    done = subprocess.run([sys.executable, BENCHMARKS / 'run.py', *options],
                          capture_output=True,
                          text=True)
    assert done.returncode == 2 and message in done.stderr
