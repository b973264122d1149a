"""Properties of every registered attention, and the equations of the papers' ones.

Legend: B batch, h heads, (H, W) map, N = H * W tokens, C channels.
"""

import inspect
import math
from contextlib import nullcontext

import pytest
import torch
from deterministic import deterministic_algorithms
from torch import nn
from torch.autograd import gradcheck
from torch.nn.functional import interpolate

from mmlinattn import functional as F
from mmlinattn.analysis import count_flops
from mmlinattn.deployment import ExportedModel, export, parity
from mmlinattn.functional import tokens as sums
from mmlinattn.models import BaseAttention, PyramidTransformer
from mmlinattn.registry import MODELS

# options that matter on small maps
LINEAR = dict(
    type='SoftmaxFreeAttention',
    sampling_ratio=2,
    num_landmarks=9,
    attn_norm='rows',
    solver='cholesky',
    ridge=0.001,
    relative_ridge=True,
)
CASES = {
    'softmax': dict(type='SoftmaxAttention', lepe=True),
    'softmax-shared': dict(type='SoftmaxAttention', shared_qk=True),
    'efficient': dict(type='EfficientAttention', lepe=True),
    'efficient-plain': dict(type='EfficientAttention'),
    'performer': dict(type='PerformerAttention', num_features=9, lepe=True),
    'performer-plain': dict(type='PerformerAttention'),
    'gaussian': dict(type='GaussianAttention'),
    'gaussian-softmax': dict(type='GaussianAttention', softmax=True, lepe=True),
    'gaussian-two': dict(type='GaussianAttention', shared_qk=False),
    'focused': dict(type='FocusedLinearAttention'),
    'focused-lepe': dict(
        type='FocusedLinearAttention', focusing_factor=2, kernel_size=3, lepe=True
    ),
    'focused-table': dict(type='FocusedLinearAttention', map_side=5),
    'inline': dict(type='InLineAttention'),
    'inline-lepe': dict(type='InLineAttention', lepe=True, reads_shortcut=True),
    'polaformer': dict(type='PolaFormerAttention', map_side=5),
    'agent': dict(type='AgentAttention', num_agents=4, map_side=5),
    'agent-dense': dict(type='AgentAttention', num_agents=4, map_side=5, used_agents=9),
    'nystrom': dict(type='NystromAttention', num_landmarks=9),
    'nystrom-plain': dict(type='NystromAttention', num_landmarks=4, lepe=False),
    'linformer': dict(type='LinformerAttention', sr_ratio=2),
    'linformer-1': dict(type='LinformerAttention', sr_ratio=1),
    'cross-shaped': dict(type='CrossShapedWindowAttention', stripe_width=2),
    'cross-shaped-plain': dict(
        type='CrossShapedWindowAttention', stripe_width=3, lepe=False
    ),
    'elfatt': dict(type='ELFATT', block_size=9),
    'elfatt-quarter': dict(type='ELFATT', block_size=4, split_ratio=0.25),
    'elfatt-plain': dict(type='ELFATT', block_size=9, lepe=False),
    'elfatt-mask': dict(type='ELFATT', block_size=9, mask_padding=True),
    'elfatt-global': dict(type='ELFATT', block_size=9, split_ratio=1),
    'elfatt-local': dict(type='ELFATT', block_size=9, split_ratio=0),
    'softmax-free': dict(type='SoftmaxFreeAttention', sampling_ratio=2),
    'softmax-free-ridge': dict(
        type='SoftmaxFreeAttention', sampling_ratio=2, attn_norm=False, sampler='pool'
    ),
    'softmax-free-rows': LINEAR,
    **{
        f'softmax-free-exact-{side}': dict(LINEAR, exact_window=side) for side in (1, 4)
    },
    'window': dict(type='WindowAttention', window_size=3),
    'window-shifted': dict(type='WindowAttention', window_size=3, shift_size=1),
    'talking-heads': dict(type='TalkingHeadsAttention'),
    'class': dict(type='ClassAttention'),
    'mlla': dict(type='MLLAAttention'),
    'vssd': dict(type='VSSDAttention'),
    'vssd-states': dict(type='VSSDAttention', state_dims=5),
    'multi-scale': dict(type='MultiScaleLinearAttention'),
    'multi-scale-three': dict(
        type='MultiScaleLinearAttention', scales=(3, 7), qkv_bias=True, proj_bias=False
    ),
    'multi-scale-none': dict(type='MultiScaleLinearAttention', scales=()),
    'rank-augmented': dict(type='RankAugmentedAttention'),
    'softmax-rotary': dict(type='RotarySoftmaxAttention'),
    'magnitude-aware': dict(type='MagnitudeAwareAttention'),
    'norm-aware': dict(type='NormAwareLinearAttention'),
    'ttt': dict(type='TTTAttention'),
    'ttt-plain': dict(type='TTTAttention', rotary=False),
}
REGISTERED = {
    name: kind
    for name, kind in MODELS.module_dict.items()
    if issubclass(kind, BaseAttention) and kind.__module__.startswith('mmlinattn.')
}
# an attention without an entry above is tested as it is by default
EVERY = {
    **CASES,
    **{
        name: dict(type=name)
        for name in REGISTERED
        if name not in [case['type'] for case in CASES.values()]
    },
}
ALL = pytest.mark.parametrize('name', EVERY)
# one of each type, and one that has an autograd function of its own
KINDS = {case['type']: name for name, case in reversed(EVERY.items())}.values()
KINDS = (*KINDS, 'softmax-free-exact-4')
EACH_KIND = pytest.mark.parametrize('name', KINDS)
# it refuses AttnScale
UNSCALED = ('class',)
# other tests have the whole equation, or outputs of the official code
TESTED_ELSEWHERE = (
    'SoftmaxFreeAttention',
    'WindowAttention',
    'CrossShapedWindowAttention',
    'FocusedLinearAttention',
    'InLineAttention',
    'PolaFormerAttention',
    'TalkingHeadsAttention',
    'ClassAttention',
    'MLLAAttention',
    'VSSDAttention',
    'MultiScaleLinearAttention',
    'RankAugmentedAttention',
    'RotarySoftmaxAttention',
    'MagnitudeAwareAttention',
    'NormAwareLinearAttention',
    'TTTAttention',
)
OLD_TORCH = torch.__version__.startswith('2.1.')


def make(name, **options):
    return MODELS.build({'embed_dims': 24, 'num_heads': 4, **EVERY[name], **options})


def build(name, **options):
    """A module whose every parameter matters."""
    module = make(name, **options)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module.eval()


def build_scaled(name, **options):
    return build(name, attn_scale=name not in UNSCALED, **options)


def tokens(hw_shape, num_extra=0, batch=2, dtype=torch.float64):
    return torch.randn(batch, num_extra + math.prod(hw_shape), 24, dtype=dtype)


def split(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


@pytest.mark.modern_full
@EACH_KIND
def test_has_deterministic_algorithms(name):
    module, x = build(name).double().train(), tokens((7, 9)).requires_grad_()
    grads = []
    for context in (nullcontext(), deterministic_algorithms()):
        with context:
            out = module(x, (7, 9))
            grads += torch.autograd.grad(out.square().sum(), x)
    torch.testing.assert_close(*grads)


def merge(x):
    return x.transpose(1, 2).flatten(2)


def paper_conv(conv, v, hw_shape):
    """Every channel of v (B, N, C) with its own filter."""
    maps = v.mT.unflatten(-1, hw_shape)
    padding = conv.weight.size(-1) // 2
    maps = nn.functional.conv2d(
        maps, conv.weight, conv.bias, padding=padding, groups=len(conv.weight)
    )
    return maps.flatten(2).mT


def paper_lepe(conv, v, hw_shape):
    """LePE of v (B, N, C): none for extra tokens."""
    num_extra = v.size(1) - math.prod(hw_shape)
    out = paper_conv(conv, v[:, num_extra:], hw_shape)
    return torch.cat((torch.zeros_like(v[:, :num_extra]), out), 1)


def paper_lepe_in_blocks(conv, v, hw_shape, block_shape):
    """Each block of v (B, N, C) convolved as a map of its own."""
    blocks = F.blockify(v, hw_shape, block_shape).unbind(1)
    blocks = torch.stack([paper_conv(conv, x, block_shape) for x in blocks], 1)
    return F.unblockify(blocks, hw_shape, block_shape)


def paper_grid(x, hw_shape, side):
    """Means of x (B, h, N, d) over a grid of cells."""
    maps = x.mT.flatten(0, 1).unflatten(-1, hw_shape)
    means = nn.functional.adaptive_avg_pool2d(maps, side)
    return means.flatten(2).unflatten(0, x.shape[:2]).mT


def paper_agent_bias(bias, hw_shape):
    """Table, rows and columns, resized to map and agents in use: (h, n, N)."""

    def resize(x, size):
        return interpolate(x, size, mode='bilinear', align_corners=False)

    height, width = hw_shape
    out = resize(bias.table, hw_shape)
    out = out + resize(bias.rows, (height, 1)) + resize(bias.columns, (1, width))
    out = out.flatten(2)
    if bias.used_side != bias.stored_side:  # of every token, over the grid of agents
        grids = out.transpose(1, 2).unflatten(-1, (bias.stored_side,) * 2)
        out = resize(grids, (bias.used_side,) * 2).flatten(2).transpose(1, 2)
    return out


def agents(module, q, k, v, hw_shape):
    biases = [
        paper_agent_bias(bias, hw_shape)[None]
        for bias in (module.agent_bias, module.query_bias)
    ]
    grid = paper_grid(q, hw_shape, module.agent_side)
    return F.agent_attention(q, k, v, grid, biases[0], biases[1].mT)


def nystrom(module, q, k, v, hw_shape):
    grid = [min(module.landmark_side, side) for side in hw_shape]
    landmarks = [paper_grid(x, hw_shape, grid) for x in (q, k)]
    return F.nystrom_attention(q, k, v, *landmarks)


def softmax(module, q, k, v, hw_shape):
    return (q @ k.mT / q.size(-1) ** 0.5).softmax(-1) @ v


def gaussian(module, q, k, v, hw_shape):
    distances = (q[..., :, None, :] - k[..., None, :, :]).square().sum(-1)
    kernel = (-distances / (2 * q.size(-1) ** 0.5)).exp()
    return (kernel.softmax(-1) if module.softmax else kernel) @ v


# the equation of an attention, of heads (B, h, N, d) and without AttnScale: every
# registered one has a row, unless it is TESTED_ELSEWHERE
HEADS = {
    'SoftmaxAttention': softmax,
    'LinformerAttention': softmax,
    'GaussianAttention': gaussian,
    'EfficientAttention': lambda module, q, k, v, _: F.efficient_attention(q, k, v),
    'PerformerAttention': lambda module, q, k, v, _: F.performer_attention(
        q, k, v, module.features
    ),
    'AgentAttention': agents,
    'NystromAttention': nystrom,
}


def elfatt(module, q, k, v, hw_shape):
    dims, heads, size = module.half_dims, module.half_heads, module.block_size
    options = dict(mask_padding=module.mask_padding, omega=module.omega)
    out = F.elfatt_attention(q, k, v, hw_shape, size, dims, heads, **options)
    if module.with_lepe:
        first, second = v.split(dims, -1)
        local, shape = module.local_lepe, module.block_shape
        if dims[0]:
            first = paper_lepe(module.global_lepe, first, hw_shape)
        if dims[1]:
            second = paper_lepe_in_blocks(local, second, hw_shape, shape)
        out = out + torch.cat((first, second), -1)
    return out


def paper_attention(module, x, hw_shape):
    """The module written out around the functions of the equations."""
    kind = type(module).__name__
    if kind == 'LinformerAttention':
        keys = x
        if module.sr_ratio > 1:
            cells = F.blockify(x, hw_shape, module.sr_ratio)  # (B, n, r * r, C)
            conv = module.reduction
            keys = torch.einsum('bnsc,ocs->bno', cells, conv.weight.flatten(2))
            keys = module.norm(keys + conv.bias)
        q, (k, values) = module.q(x), module.kv(keys).chunk(2, -1)
    else:
        parts = module.qkv(x).split(24, -1)
        # one projection for queries and keys comes first
        q, k, values = parts[0], parts[-2], parts[-1]
    if kind == 'ELFATT':
        return module.proj(elfatt(module, q, k, values, hw_shape))
    q, k, v = (split(t, 4) for t in (q, k, values))
    out = HEADS[kind](module, q, k, v, hw_shape)
    if module.omega is not None:
        out = F.attn_scale(out, v, module.omega)
    out = merge(out)
    if getattr(module, 'lepe', None) is not None:
        out = out + paper_lepe(module.lepe, values, hw_shape)
    return module.proj(out)


@pytest.mark.parametrize('attn_scale', (False, True))
@pytest.mark.parametrize(
    'hw_shape, num_extra', (((5, 7), 0), ((6, 4), 3), ((1, 1), 0)), ids=str
)
@pytest.mark.parametrize(
    'name', [x for x, case in EVERY.items() if case['type'] not in TESTED_ELSEWHERE]
)
def test_matches_the_paper(name, hw_shape, num_extra, attn_scale):
    module = build(name, attn_scale=attn_scale).double()
    x = tokens(hw_shape, 0 if module.bound_to_map else num_extra)
    expected = paper_attention(module, x, hw_shape)
    torch.testing.assert_close(module(x, hw_shape), expected)


@pytest.mark.parametrize('batch', (1, 2))
@ALL
def test_forward_computes_attend(name, batch):
    """A faster computation gives the output and the gradients of attend, which is
    called where it is an attribute of the module."""
    module = build(name)
    num_extra = 0 if module.bound_to_map else 1
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 2e-6)):
        module.to(dtype)
        x = tokens((5, 7), num_extra, batch, dtype).requires_grad_()
        results = []
        for attend in (None, module.attend):
            if attend:
                module.attend = attend
            out = module(x, (5, 7))
            weights = torch.linspace(-1, 1, out.numel(), dtype=dtype)
            learned = [x, *(p for p in module.parameters() if p.requires_grad)]
            loss = (out.flatten() * weights).sum()
            grads = torch.autograd.grad(loss, learned, allow_unused=True)
            results.append([out, *grads])
        del module.attend
        for fast, plain in zip(*results):
            if plain is not None:
                scale = plain.abs().max().clamp(min=1)
                torch.testing.assert_close(
                    fast / scale, plain / scale, rtol=0, atol=tolerance
                )


@pytest.mark.parametrize('method', ('attend', 'product', 'project'))
@EACH_KIND
def test_methods_of_a_subclass_are_called(name, method):
    module, x = build(name).double(), tokens((5, 7))
    kind, calls = type(module), []
    own = getattr(kind, method, None)
    if own in (None, BaseAttention.product):
        pytest.skip(f'{kind.__name__} has no {method}')
    before = module(x, (5, 7))

    def called(self, *args):
        calls.append(method)
        return own(self, *args)

    module.__class__ = type('Own', (kind,), {method: called})
    torch.testing.assert_close(module(x, (5, 7)), before, rtol=0, atol=1e-9)
    assert calls


@EACH_KIND
def test_sums_in_parts(name, monkeypatch):
    """Sums over tokens in parts, as on a GPU, are those of all tokens at once."""
    module = build(name).double()
    x = tokens((5, 7)).requires_grad_()
    expected = module(x, (5, 7))
    grad = torch.randn_like(expected)
    (expected_grad,) = torch.autograd.grad(expected, x, grad)
    monkeypatch.setattr(sums, '_comes_whole', lambda x: False)
    monkeypatch.setattr(sums, '_TOKENS', 5)
    result = module(x, (5, 7))
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(torch.autograd.grad(result, x, grad)[0], expected_grad)


@pytest.mark.parametrize(
    'num_tokens, hw_shape, message',
    (
        (16, (3, 5), r'N=16.*\(3, 5\)'),
        (15, (4, 5), r'N=15.*\(4, 5\)'),
        (0, (0, 5), r'N=0.*\(0, 5\)'),
    ),
)
@ALL
def test_attentions_bound_to_the_map(name, num_tokens, hw_shape, message):
    module = make(name)
    if not module.bound_to_map:
        pytest.skip('takes extra tokens')
    with pytest.raises(ValueError, match=message):
        module(torch.randn(1, num_tokens, 24), hw_shape)


@pytest.mark.parametrize('hw_shape', ((5, 7), (1, 1), (1, 6), (9, 3)), ids=str)
@ALL
def test_an_image_does_not_see_its_neighbors(name, hw_shape):
    module = build_scaled(name).double()
    x = tokens(hw_shape, batch=3)
    x[1] = x[1, :1]  # a flat image
    x[2] *= 30
    together = module(x, hw_shape)
    assert together.shape == x.shape and together.isfinite().all()
    for i in range(3):
        torch.testing.assert_close(together[i : i + 1], module(x[i : i + 1], hw_shape))


@ALL
def test_every_parameter_learns(name):
    module = build_scaled(name).train()
    x = tokens((5, 7), 0 if module.bound_to_map else 3, dtype=torch.float32)
    (module(x, (5, 7)) * torch.randn_like(x)).sum().backward()
    for key, parameter in module.named_parameters():
        assert parameter.grad.isfinite().all(), key
        # the first mix's bias is one number for a whole row, softmax ignores it
        assert key == 'mix_logits.bias' or parameter.grad.any(), key


@ALL
def test_gradcheck(name):
    if name in ('softmax-free', 'softmax-free-ridge'):
        pytest.skip('its gradient is exact where Newton has converged')
    module = build_scaled(name).double()
    x = tokens((3, 4), 0 if module.bound_to_map else 2, batch=1).requires_grad_()
    assert gradcheck(lambda x: module(x, (3, 4)), x, fast_mode=True)


@pytest.mark.parametrize('name', [x for x in EVERY if x not in UNSCALED])
def test_attn_scale_is_the_identity_at_start(name):
    plain, scaled = build(name), make(name, attn_scale=True).eval()
    missing, unexpected = scaled.load_state_dict(plain.state_dict(), False)
    assert missing == ['omega'] and not unexpected
    x = tokens((5, 7), dtype=torch.float32)
    torch.testing.assert_close(scaled(x, (5, 7)), plain(x, (5, 7)))


@ALL
def test_half_precision_under_autocast(name):
    module = build_scaled(name)
    x = tokens((9, 10), dtype=torch.float32)
    expected = module(x, (9, 10))
    with torch.autocast('cpu', torch.bfloat16):
        out = module(x, (9, 10))
    assert (out - expected).norm() < 0.05 * expected.norm()


@pytest.mark.modern_full
@pytest.mark.parametrize(
    'name',
    [
        name
        for name, case in EVERY.items()
        if 'attn_drop' in inspect.signature(REGISTERED[case['type']]).parameters
    ],
)
def test_dropout_keeps_the_mean(name):
    """Dropped weights, then scaled: on average the scaled ones without dropout."""
    module = build_scaled(name, attn_drop=0.3).double()
    x = tokens((3, 4), batch=1)
    expected = module(x, (3, 4))[0]
    num = 4096
    with torch.no_grad():
        outs = module.train()(x.expand(num, -1, -1), (3, 4))
    changed = outs.std(0) > 1e-9  # all but the tokens that pass through
    assert changed[0].all()
    error = (outs.mean(0) - expected).abs()
    assert (error <= 5 * outs.std(0) / num**0.5 + 1e-9).all()


@pytest.mark.modern_full
@pytest.mark.parametrize('name', CASES)
def test_cost(name):
    """Four times the tokens, four times the cost or less; what the attentions
    do with their landmarks or agents alone does not grow at all."""

    def flops(side):
        with torch.device('meta'):
            module, x = make(name), torch.zeros(1, side**2, 24)
        return count_flops(module, x, (side, side)).total()

    # with a landmark for each cell, softmax-free attention is not linear
    more = name.startswith(
        ('softmax', 'gaussian', 'talking-heads', 'linformer', 'cross-shaped')
    )
    fixed = ('softmax-free-rows', 'softmax-free-exact')  # their number is fixed
    more = more and not name.startswith(fixed)
    assert (flops(72) > 4 * flops(36)) == more


def in_a_backbone(name):
    """The smallest one, out of tokens."""
    arch = dict(embed_dims=[24], depths=[1], num_heads=[4])
    stem = dict(type='ConvEmbedding', kernel_size=8, stride=8)
    with_cls_token = EVERY[name]['type'] == 'ClassAttention'
    model = PyramidTransformer(
        arch, stem=stem, attention=EVERY[name], with_cls_token=with_cls_token
    )
    model.init_weights()
    return model.eval()


@EACH_KIND
def test_one_graph(name):
    model, x = in_a_backbone(name), torch.randn(2, 3, 64, 72)
    torch._dynamo.reset()
    compiled = torch.compile(model, backend='eager', fullgraph=True, dynamic=False)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-4)


EXPORTS = [pytest.param('onnx', marks=pytest.mark.modern_full)]
if hasattr(torch.compiler, 'is_exporting'):
    EXPORTS.append('export')


@pytest.mark.parametrize('kind', EXPORTS)
@EACH_KIND
def test_exported(name, kind, tmp_path):
    """It runs at the size of the export, and at others if the format allows them."""
    if kind == 'onnx':
        pytest.importorskip('onnxruntime')
    model = ExportedModel(in_a_backbone(name))
    run = export(model, tmp_path / f'model.{kind}', kind, (65, 97))
    sizes = ((1, 65, 97),) if kind == 'export' else ((1, 65, 97), (2, 40, 130))
    for batch, height, width in sizes:
        x = torch.randn(batch, 3, height, width)
        assert max(parity(model, run, x).values()) <= 1e-4


@pytest.mark.parametrize(
    'embed_dims, num_heads, split_ratio, dims, heads',
    (
        (96, 3, 0.5, (48, 48), (1, 1)),
        (96, 1, 0.5, (48, 48), (1, 1)),
        (64, 4, 0.25, (16, 48), (2, 2)),
        (96, 3, 0, (0, 96), (0, 3)),
        (96, 3, 1, (96, 0), (3, 0)),
    ),
)
def test_heads_of_the_halves(embed_dims, num_heads, split_ratio, dims, heads):
    options = dict(embed_dims=embed_dims, num_heads=num_heads, split_ratio=split_ratio)
    module = make('elfatt', attn_scale=True, **options)
    assert (module.half_dims, module.half_heads) == (dims, heads)
    assert len(module.omega) == sum(heads)


def test_performer_keeps_its_features():
    module, other = make('performer'), make('performer')
    assert not module.features.equal(other.features)
    other.load_state_dict(module.state_dict())
    x = tokens((5, 7), dtype=torch.float32)
    assert other(x, (5, 7)).equal(module.train()(x, (5, 7)))


@pytest.mark.modern_full
@pytest.mark.parametrize(
    'name, options, message',
    (
        ('elfatt', dict(split_ratio=1.5), r'split_ratio.*\[0, 1\].*1.5'),
        (
            'elfatt',
            dict(split_ratio=0.3),
            'split_ratio=0.3.*embed_dims=24.*num_heads=4',
        ),
        (
            'elfatt',
            dict(split_ratio=0.125),
            'multiple of 2 channels.*split_ratio=0.125',
        ),
        ('elfatt', dict(block_size=50), 'block_size.*square.*50'),
        ('cross-shaped', dict(num_heads=3), 'num_heads must be even.*num_heads=3'),
        ('cross-shaped', dict(stripe_width=0), 'stripe_width.*0'),
        ('agent', dict(num_agents=5), 'num_agents.*square.*5'),
        ('agent', dict(map_side=0), 'map_side.*0'),
        ('agent', dict(used_agents=8), 'used_agents.*square.*8'),
        ('nystrom', dict(num_landmarks=8), 'num_landmarks.*square.*8'),
        ('nystrom', dict(num_iters=0), 'num_iters.*0'),
        ('linformer', dict(sr_ratio=0), 'sr_ratio.*0'),
        ('performer', dict(num_features=0), 'num_features.*0'),
        ('focused', dict(focusing_factor=0), 'focusing_factor.*0'),
        ('focused', dict(kernel_size=4), 'kernel_size.*odd.*4'),
        ('focused', dict(map_side=0), 'map_side.*0'),
        ('polaformer', dict(alpha=0), 'alpha must be positive.*0'),
        ('polaformer', dict(num_heads=8), 'even number.*num_heads=8'),
        ('window', dict(shift_size=3), 'shift_size must be in 0...2 for window_size=3'),
        ('class', dict(attn_scale=True), 'attn_scale must be False'),
        ('mlla', dict(embed_dims=9, num_heads=3), 'embed_dims.*even.*9'),
        ('vssd', dict(state_dims=0), 'state_dims.*positive.*0'),
        ('multi-scale', dict(scales=(4,)), 'kernel_size must be odd, got 4'),
        ('rank-augmented', dict(num_heads=8), 'must be even.*24 / 8'),
        ('ttt', dict(embed_dims=9, num_heads=3), 'embed_dims.*even.*9'),
    ),
)
def test_wrong_options(name, options, message):
    with pytest.raises(ValueError, match=message):
        make(name, **options)


@pytest.mark.modern_full
@ALL
def test_wrong_heads(name):
    with pytest.raises(ValueError, match='num_heads=5.*embed_dims=24'):
        make(name, num_heads=5)
