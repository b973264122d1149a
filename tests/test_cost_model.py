"""The cost model's counts, against those made by hand; its times are no one's."""

from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from mmlinattn.functional.softmax_free.solvers import PolynomialSolver

BENCHMARKS = Path(__file__).resolve().parents[1] / 'benchmarks'


@pytest.fixture
def model(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module('cost_model')


def test_layers_of_softpp_tiny(model):
    layers = model.softmax_free_layers('tiny', (800, 1344), batch=1)
    assert [x.tokens for x in layers] == [67200, 16800, 4200]
    assert {x.landmarks for x in layers} == {1050}
    assert sum(x.count * x.matrices for x in layers) == 52


def test_newton_is_forty_products_of_a_matrix(model):
    cost = model.newton_fp32(1050, 1, 32, 100, applications=0)
    assert cost.flops == Counter(fp32=20 * 2 * 2 * 1050**3)
    assert cost.launches == 40
    # in two parts: three products of parts each, on half-precision tensor cores
    split = model.newton_split(1050, 1, 32, 100, 0)
    assert split.flops == Counter(fp16=3 * cost.flops['fp32'])


class Kernels(TorchDispatchMode):
    """Counts operators that are no views, and products' FLOPs."""

    def __init__(self):
        super().__init__()
        self.launches = self.flops = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        view = any(x.alias_info for x in func._schema.returns)
        self.launches += func._schema.is_mutable or not view
        if 'bmm' in func.__name__:
            left, right = args[-2:]
            self.flops += 2 * left.numel() * right.size(-1)
        return out


def test_polynomial_is_counted_as_it_runs(model):
    n, m, d = 2, 50, 4
    alpha, a, x = torch.ones(n, 1, 1), torch.rand(n, m, m), torch.rand(n, m, d)
    solver = PolynomialSolver(20)
    for applications in (0, 1, 2):
        with Kernels() as kernels:
            prepared = solver.prepare(a, alpha)
            for _ in range(applications):
                solver.apply(prepared, x)
        cost = model.polynomial_fp32(m, n, d, 100, applications)
        assert cost.flops['fp32'] == kernels.flops
        # the step size has two more, of one number for each matrix
        assert cost.launches == kernels.launches - 2


@pytest.mark.modern
@pytest.mark.parametrize('halves', (1, 2))
def test_kernels_of_the_polynomial_are_counted_as_they_run(halves, model, monkeypatch):
    pytest.importorskip('triton', minversion='3.0')
    kernels = import_module('mmlinattn.functional.softmax_free.triton.polynomial')
    launches = []

    def parabola(high, low, height):
        launches.append('parabola')
        return high, low

    def multiply(w, b, *args):
        launches.append('columns' if w[1] is None else 'columns, both')
        return b

    monkeypatch.setattr(kernels, '_split_parts', lambda *args: None)
    monkeypatch.setattr(kernels, '_parabola', parabola)
    monkeypatch.setattr(kernels, '_multiply', multiply)
    n, m, d = 2, 128, 16
    a, x, scale = torch.zeros(n, m, m), torch.zeros(n, m, d), torch.ones(n, 1, 1)
    powers = kernels._powers(a, scale, model.STEPS, halves)
    kernels._apply(x, scale, powers, model.STEPS, halves)
    cost = model.polynomial_kernels(m, n, d, 100, 1, halves)
    products = {'parabola': 3 * m, 'columns': 2 * d, 'columns, both': 3 * d}
    assert cost.flops['fp16'] == sum(2 * n * m * m * products[x] for x in launches)
    # with 11 for norms, halves and the way back
    assert cost.launches == len(launches) + 11


def test_deflation_needs_few_eigenpairs(model):
    few, none = (model.deflation(1050, 8, 32, x, 2) for x in (50, 300))
    assert none is None
    assert few.syncs == 1
    assert few.flops['fp32'] < 0.2 * model.newton_fp32(1050, 8, 32, 50, 2).flops['fp32']


def test_seconds_are_of_what_takes_longest(model):
    card = model.CARDS['a100']
    flops = model.Cost(flops=Counter(fp32=card.tflops['fp32'] * 1e12))
    assert flops.seconds(card) == pytest.approx(1 / model.GEMM_SHARE)
    assert (flops + model.Cost(bytes=1)).seconds(card) == flops.seconds(card)
    assert (flops + model.Cost(syncs=1)).seconds(card) == flops.seconds(
        card
    ) + model.SYNC
    assert (1000 * model.Cost(launches=1)).seconds(card) == 1000 * model.LAUNCH


def test_rest_of_model_has_no_inverse(model):
    once = model.rest_of_model('tiny', (224, 224), 1, half=False, training=False)
    # SOFT++-T has 1.9 G multiply-accumulates at 224x224 in the paper, inverse included
    assert 1e9 < once.flops['fp32'] / 2 < 2.2e9
    half = model.rest_of_model('tiny', (224, 224), 2, half=True, training=True)
    assert half.flops['fp16'] == 2 * 3 * once.flops['fp32']
    assert half.bytes == pytest.approx(3 * once.bytes)


def test_page(model, tmp_path, capsys):
    model.main(['--model', 'tiny:224x224', '--card', 'h100', '--out', str(tmp_path)])
    page = (tmp_path / 'cost_model.md').read_text()
    assert page == capsys.readouterr().out.rstrip('\n') + '\n'
    assert 'Modelled, not measured' in page
    assert '| polynomial, one half |' in page


@pytest.mark.parametrize(
    'argv, named',
    [
        (['--model', 'huge:224x224'], 'huge:224x224'),
        (['--batch', '0'], '--batch'),
        (['--card', 'v100'], 'v100'),
    ],
)
def test_bad_input(argv, named, model, capsys):
    with pytest.raises(SystemExit) as error:
        model.parse_args(argv)
    assert error.value.code == 2
    assert named in capsys.readouterr().err
