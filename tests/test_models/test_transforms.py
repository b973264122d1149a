"""torch.func through every backbone and every attention, in eval mode."""

import miniature_backbones as battery
import pytest
import torch
from loading import load_module
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.func import functional_call, grad, jvp, vmap

from mmlinattn.functional import depthwise_conv2d, newton_pinv
from mmlinattn.functional.softmax_free.inverse import cholesky_solve
from mmlinattn.registry import MODELS

zoo = load_module('tests/test_models/test_attentions/test_zoo.py')


def plain_attention():
    """PyTorch's fused attention has neither a second gradient nor one in forward mode,
    and no vmap in torch 2.1."""
    if hasattr(torch.nn, 'attention'):
        kernels = torch.nn.attention
        if hasattr(kernels, 'sdpa_kernel'):
            return kernels.sdpa_kernel(kernels.SDPBackend.MATH)
    return torch.backends.cuda.sdp_kernel(
        enable_flash=False, enable_mem_efficient=False
    )


def norm(tree):
    return sum(x.square().sum() for x in tree.values()).sqrt()


def error(results, expected):
    """Of all gradients together: some are zero but for rounding."""
    assert results.keys() == expected.keys()
    change = {k: results[k] - x for k, x in expected.items()}
    return (norm(change) / norm(expected)).item()


def check(module, x, *args):
    """All transformations of a module that takes a batch, in float64."""
    module, x = module.double().eval(), x.double()
    parameters = {k: p.detach() for k, p in module.named_parameters()}

    def loss(parameters, x):
        outs = functional_call(module, parameters, (x, *args))
        outs = outs if isinstance(outs, tuple) else (outs,)
        return sum(out.square().mean() for out in outs)

    learned = dict(module.named_parameters())
    grads = torch.autograd.grad(
        loss(learned, x), list(learned.values()), allow_unused=True
    )
    pairs = zip(learned.items(), grads)
    expected = {k: torch.zeros_like(p) if g is None else g for (k, p), g in pairs}
    results = grad(loss)(parameters, x)
    assert error(results, expected) < 1e-7
    with plain_attention():
        each = vmap(grad(lambda p, one: loss(p, one[None])), (None, 0))(parameters, x)
        assert error({k: g.mean(0) for k, g in each.items()}, expected) < 1e-7
        step = {k: torch.randn_like(p) / (1 + p.abs()) for k, p in parameters.items()}
        _, slope = jvp(lambda p: loss(p, x), (parameters,), (step,))
        wanted = sum((expected[k] * s).sum() for k, s in step.items())
        assert (slope - wanted).abs() <= 1e-7 * norm(expected) * norm(step)
        # of the gradient along a step: forward over reverse, and reverse twice
        _, curved = jvp(lambda p: grad(loss)(p, x), (parameters,), (step,))

        def along(p):
            return sum((g * step[k]).sum() for k, g in grad(loss)(p, x).items())

        assert error(grad(along)(parameters), curved) < 1e-5


NAMES = [name for name in battery.CASES if 'scaled' not in name]


@pytest.mark.parametrize('name', NAMES)
def test_backbones(name):
    options = {**battery.shallow(name), 'out_indices': battery.ALL}
    options.pop('num_iters', None)  # the gradient is exact where the steps converge
    # a landmark next to others: the norm of a single one, centered, has no second
    side = 64 if 'Linear' in name else 32
    check(battery.build(name, **options), torch.randn(2, 3, side, 40))


@pytest.mark.parametrize('name', zoo.EVERY)
def test_attentions(name):
    hw_shape = 5, 7
    check(zoo.build_scaled(name), zoo.tokens(hw_shape), hw_shape)


@pytest.mark.full
@pytest.mark.parametrize('kind', ['PyramidTransformer', 'SwinTransformer'])
@pytest.mark.parametrize('name', [x for x in zoo.EVERY if x != 'class'])
def test_attentions_in_backbones(name, kind):
    arch = dict(embed_dims=24, depths=[1, 1], num_heads=[4, 4])
    cfg = dict(type=kind, arch=arch, attention=zoo.EVERY[name])
    check(MODELS.build(cfg), torch.randn(2, 3, 32, 40))


def inverse(solver):
    """Of a matrix of condition 10, whose symmetric entries change together."""

    def solve(a, rhs):
        a = a @ a.mT / 4 + torch.eye(4, dtype=a.dtype)
        if solver == 'cholesky':
            return cholesky_solve(a, rhs)
        return newton_pinv(a, 20, rhs, alpha=0.02 * torch.ones(1, 1), solver=solver)

    return solve, (2, 4, 4), (2, 4, 3)


FUNCTIONS = {
    'convolution': (depthwise_conv2d, (2, 3, 4, 5), (3, 1, 3, 3)),
    **{x: inverse(x) for x in ('newton', 'spectral', 'polynomial', 'cholesky')},
}


@pytest.mark.parametrize('name', FUNCTIONS)
def test_functions(name):
    """First and second derivatives of both inputs, forward and reverse, batched."""
    function, *shapes = FUNCTIONS[name]
    inputs = [torch.rand(x, dtype=torch.float64, requires_grad=True) for x in shapes]
    options = dict(atol=1e-6) if name == 'polynomial' else {}
    assert gradcheck(function, inputs, check_forward_ad=True, **options)
    assert gradgradcheck(function, inputs, **options)
    first, second = (torch.stack([x, 2 * x]).detach() for x in inputs)
    for dims in ((0, 0), (0, None), (None, 0)):
        pair = [x if d == 0 else x[0] for x, d in zip((first, second), dims)]
        results = vmap(function, dims)(*pair)
        for i, one in enumerate(results):
            single = [x[i] if d == 0 else x for x, d in zip(pair, dims)]
            torch.testing.assert_close(one, function(*single))


@pytest.mark.parametrize('name', FUNCTIONS)
def test_tangents_of_inputs_without_gradients(name):
    function, *shapes = FUNCTIONS[name]
    inputs = [torch.rand(x, dtype=torch.float64) for x in shapes]
    steps = [torch.rand_like(x) for x in inputs]
    _, expected = jvp(function, tuple(inputs), tuple(steps))
    with forward_ad.dual_level():
        out = function(*map(forward_ad.make_dual, inputs, steps))
        slope = forward_ad.unpack_dual(out).tangent
    torch.testing.assert_close(slope, expected)
