import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from mmlinattn import functional
from mmlinattn.analysis import KINDS, FlopCount, count_flops

pytestmark = pytest.mark.modern
DEVICES = ('cpu', 'meta')


def kinds(model, *shapes, device='cpu'):
    """Multiply-accumulates by kind, without the kinds that there are none of."""
    inputs = [torch.zeros(shape, device=device) for shape in shapes]
    counted = count_flops(model.to(device), *inputs).by_kind()
    return {kind: macs for kind, macs in counted.items() if macs}


class Call(nn.Module):
    """A function as a model."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


LAYERS = {
    'conv': (
        nn.Conv2d(4, 6, 3, padding=1),
        (2, 4, 5, 7),
        dict(conv=2 * 5 * 7 * 6 * 4 * 9),
    ),
    'conv-stride': (
        nn.Conv2d(4, 6, 3, stride=2),
        (1, 4, 7, 9),
        dict(conv=3 * 4 * 6 * 4 * 9),
    ),
    'conv-depthwise': (
        nn.Conv2d(4, 4, 3, padding=1, groups=4),
        (1, 4, 5, 7),
        dict(conv=5 * 7 * 4 * 9),
    ),
    'conv-transposed': (
        nn.ConvTranspose2d(4, 6, 2, stride=2, groups=2),
        (1, 4, 5, 7),
        dict(conv=5 * 7 * 4 * 3 * 4),
    ),
    'linear': (nn.Linear(8, 3), (2, 5, 8), dict(linear=2 * 5 * 8 * 3)),
    'linear-no-bias': (
        nn.Linear(8, 3, bias=False),
        (2, 5, 8),
        dict(linear=2 * 5 * 8 * 3),
    ),
    'linear-vector': (nn.Linear(8, 3), (8,), dict(linear=8 * 3)),
    'matmul': (Call(lambda x: x @ x.mT), (2, 3, 5, 4), dict(matmul=2 * 3 * 5 * 5 * 4)),
    'matmul-in-place': (
        Call(lambda x: (x @ x.mT).baddbmm_(x, x.mT)),
        (3, 5, 4),
        dict(matmul=2 * 3 * 5 * 5 * 4),
    ),
    'einsum': (
        Call(lambda x: torch.einsum('bnhd,bmhd->bhnm', x, x)),
        (2, 5, 3, 4),
        dict(matmul=2 * 3 * 5 * 5 * 4),
    ),
    'layer-norm': (nn.LayerNorm(8), (2, 5, 8), dict(norm=5 * 2 * 5 * 8)),
    'layer-norm-no-weight': (
        nn.LayerNorm(8, elementwise_affine=False),
        (2, 5, 8),
        dict(norm=4 * 2 * 5 * 8),
    ),
    'group-norm': (nn.GroupNorm(2, 8), (2, 8, 3, 3), dict(norm=5 * 2 * 8 * 9)),
    'batch-norm': (nn.BatchNorm2d(8), (2, 8, 3, 3), dict(norm=2 * 2 * 8 * 9)),
    'instance-norm': (nn.InstanceNorm2d(8), (2, 8, 3, 3), dict(norm=4 * 2 * 8 * 9)),
    'bilinear': (
        nn.Upsample(scale_factor=2, mode='bilinear'),
        (1, 8, 3, 5),
        dict(resampling=4 * 8 * 6 * 10),
    ),
    'nearest': (nn.Upsample(scale_factor=2), (1, 8, 3, 5), dict(resampling=8 * 6 * 10)),
    'pool': (nn.AdaptiveAvgPool2d(1), (1, 8, 3, 5), dict(resampling=8 * 3 * 5)),
    'pool-map': (nn.AdaptiveAvgPool2d(2), (1, 8, 3, 5), dict(resampling=8 * 3 * 5)),
    'free': (nn.Sequential(nn.GELU(), nn.Softmax(-1)), (2, 5, 8), {}),
}


@pytest.mark.parametrize('device', DEVICES)
@pytest.mark.parametrize('name', LAYERS)
def test_layers(name, device):
    layer, shape, expected = LAYERS[name]
    assert kinds(layer, shape, device=device) == expected


def test_kinds_are_described():
    assert list(FlopCount({}).by_kind()) == list(KINDS)


@pytest.mark.parametrize('device', DEVICES)
@pytest.mark.parametrize('mask', [None, 'bias', 'causal', 'keywords'])
def test_scaled_dot_product_attention(mask, device):
    """Counted by its sizes, however it is computed, the masked part too."""
    batch, heads, n_q, n_k, d, d_v = 2, 3, 5, 7, 4, 6

    def attend(q, k, v, bias):
        if mask == 'keywords':
            return F.scaled_dot_product_attention(query=q, key=k, value=v)
        return F.scaled_dot_product_attention(
            q, k, v, bias if mask == 'bias' else None, is_causal=mask == 'causal'
        )

    counted = kinds(
        Call(attend),
        (batch, heads, n_q, d),
        (batch, heads, n_k, d),
        (batch, heads, n_k, d_v),
        (n_q, n_k),
        device=device,
    )
    assert counted == dict(softmax_attention=batch * heads * n_q * n_k * (d + d_v))


@pytest.mark.parametrize('device', DEVICES)
@pytest.mark.parametrize('need_weights', [True, False])
def test_multihead_attention(need_weights, device):
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    model = Call(lambda x: attention(x, x, x, need_weights=need_weights))
    model.attention = attention
    assert kinds(model, (2, 5, 8), device=device) == dict(
        linear=2 * 5 * 4 * 8 * 8, softmax_attention=2 * 2 * 5 * 5 * 8
    )


def test_attention_written_out():
    utils = pytest.importorskip('mmpretrain.models.utils')
    attention = utils.WindowMSA(8, (3, 3), 2)
    assert kinds(attention, (4, 9, 8)) == dict(
        linear=4 * 9 * 4 * 8 * 8, softmax_attention=4 * 2 * 9 * 9 * 8
    )


def softmax_free_attention(side, dims, heads, ratio, kernel, normalize):
    """Hand count of SoftmaxFreeAttention on one side x side map."""
    n, m, d = side**2, (side // ratio) ** 2, dims // heads
    # x is P V, y the pseudo-inverse applied to x
    kernels = dict(P=m * n * d, A=m * m * d, x=m * n * d, out=n * m * d)
    newton = dict(steps=20 * 2 * m**3, y=m * m * d)
    if normalize:  # the step size asks for the column sums of A^2
        newton['alpha'] = m * m
    return dict(
        conv=heads * m * ratio**2 * d * d + n * dims * kernel**2,
        linear=3 * n * dims**2,
        norm=5 * heads * m * d,
        gaussian_kernel=heads * sum(kernels.values()),
        pseudo_inverse=heads * sum(newton.values()),
    )


@pytest.mark.parametrize('device', DEVICES)
@pytest.mark.parametrize('solver', ['auto', 'newton', 'spectral'])
@pytest.mark.parametrize('normalize', [True, False])
def test_softmax_free_attention(normalize, solver, device):
    """A count of the model: neither the device nor the solver change it."""
    models = pytest.importorskip('mmlinattn.models')
    attention = models.SoftmaxFreeAttention(
        16, 2, sampling_ratio=2, kernel_size=5, attn_norm=normalize, solver=solver
    )
    # 100 landmarks: there the automatic choice depends on the device
    model = Call(lambda x: attention(x, (20, 20)))
    model.attention = attention
    assert kinds(model, (1, 400, 16), device=device) == softmax_free_attention(
        20, 16, 2, 2, 5, normalize
    )


def test_cholesky_is_another_count():
    m, n, d = 100, 400, 8
    q, landmarks = torch.rand(1, 2, n, d), torch.rand(1, 2, m, d)
    model = Call(
        lambda: functional.softmax_free_attention(
            q, landmarks, q, ridge=0.01, solver='cholesky'
        )
    )
    assert kinds(model) == dict(
        gaussian_kernel=2 * (3 * m * n * d + m * m * d),
        pseudo_inverse=2 * m**3 // 6 + 2 * m * m * d,
    )


def transformer_block(n, dims):
    """Projections, FFN and two LayerNorms of n tokens."""
    return dict(linear=n * dims**2 * (3 + 1 + 8), norm=2 * 5 * n * dims)


def total(*counts):
    """Sum of counts by kind."""
    return {
        kind: sum(count.get(kind, 0) for count in counts)
        for kind in set().union(*counts)
    }


def soft_tiny():
    """Hand count of SOFT-Tiny's backbone on one image of 224 x 224."""
    dims, depths, heads = (64, 128, 320, 512), (1, 2, 3, 2), (2, 4, 10, 16)
    stem = 112**2 * 32 * (3 + 32) * 9 + 56**2 * 64 * 32 * 9
    parts = [dict(conv=stem, norm=2 * (2 * 112**2 * 32 + 56**2 * 64))]
    for i, side in enumerate((56, 28, 14, 7)):
        n = side**2
        if i:
            conv = n * dims[i] * dims[i - 1] * 9
            parts.append(dict(conv=conv, norm=2 * n * dims[i]))
        for _ in range(depths[i]):
            if i == 3:  # standard attention and a class token
                products = 2 * (n + 1) ** 2 * dims[i]
                parts += [
                    transformer_block(n + 1, dims[i]),
                    dict(softmax_attention=products),
                ]
                continue
            attention = softmax_free_attention(
                side, dims[i], heads[i], 8 >> i, (9, 5, 3)[i], normalize=False
            )
            # transformer_block has a key projection, shared here with the query's
            parts += [
                transformer_block(n, dims[i]),
                attention,
                dict(linear=-4 * n * dims[i] ** 2),
            ]
    parts.append(dict(norm=5 * 50 * 512))
    return total(*parts)


def test_soft_tiny():
    models = pytest.importorskip('mmlinattn.models')
    model = models.SOFT('tiny', out_type='cls_token')
    counted = kinds(model, (1, 3, 224, 224), device='meta')
    expected = soft_tiny()
    assert counted == expected
    # The paper prints 1.9 G: that leaves the Newton-Raphson steps out.
    whole = sum(counted.values()) + 512 * 1000
    assert f'{(whole - counted["pseudo_inverse"]) / 1e9:.1f}' == '1.9'
    assert f'{whole / 1e9:.2f}' == '2.13'


class Block(nn.Module):
    """A pre-norm block of the ELFATT paper's GLOBAL models: softmax attention with
    LePE, a 3 x 3 depthwise convolution of the value map."""

    def __init__(self, dims, head_dims, side):
        super().__init__()
        self.head_dims, self.side = head_dims, side
        self.norm1, self.norm2 = nn.LayerNorm(dims), nn.LayerNorm(dims)
        self.qkv, self.proj = nn.Linear(dims, 3 * dims), nn.Linear(dims, dims)
        self.lepe = nn.Conv2d(dims, dims, 3, padding=1, groups=dims)
        self.ffn = nn.Sequential(
            nn.Linear(dims, 4 * dims), nn.GELU(), nn.Linear(4 * dims, dims)
        )

    def forward(self, x):
        qkv = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        q, k, v = (y.unflatten(-1, (-1, self.head_dims)).transpose(1, 2) for y in qkv)
        out = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        maps = qkv[2].mT.unflatten(-1, (self.side, self.side))
        x = x + self.proj(out + self.lepe(maps).flatten(2).mT)
        return x + self.ffn(self.norm2(x))


class Tokens(nn.Sequential):
    """A convolution from tokens or an image to normed tokens."""

    def forward(self, x):
        if x.dim() == 3:
            x = x.mT.unflatten(-1, (math.isqrt(x.size(1)), -1))
        return self[1](self[0](x).flatten(2).mT)


class SwinMerging(nn.Sequential):
    def __init__(self, dims):
        super().__init__(nn.LayerNorm(4 * dims), nn.Linear(4 * dims, 2 * dims, False))

    def forward(self, x):
        return super().forward(x.unflatten(1, (-1, 4)).flatten(2))


def global_swin_tiny():
    layers = [Tokens(nn.Conv2d(3, 96, 4, stride=4), nn.LayerNorm(96))]
    for i, depth in enumerate((2, 2, 6, 2)):
        layers += [Block(96 << i, 32, 56 >> i) for _ in range(depth)]
        layers.append(SwinMerging(96 << i) if i < 3 else nn.LayerNorm(768))
    return nn.Sequential(*layers)


def global_cswin_tiny():
    layers = [Tokens(nn.Conv2d(3, 64, 7, stride=4, padding=2), nn.LayerNorm(64))]
    for i, depth in enumerate((2, 4, 18, 1)):
        layers += [Block(64 << i, 32, 56 >> i) for _ in range(depth)]
        merging = nn.Conv2d(64 << i, 128 << i, 3, stride=2, padding=1)
        layers.append(
            Tokens(merging, nn.LayerNorm(128 << i)) if i < 3 else nn.LayerNorm(512)
        )
    return nn.Sequential(*layers)


@pytest.mark.parametrize(
    'build, dims, printed',
    [
        (global_swin_tiny, 768, ('8.81', '4.38')),
        (global_cswin_tiny, 512, ('7.60', '4.09')),
    ],
)
def test_convention_is_that_of_the_elfatt_paper(build, dims, printed):
    """Its Table I prints both counts of these models, at 224 x 224."""
    model = build().to('meta')
    counted = count_flops(model, torch.zeros(1, 3, 224, 224, device='meta'))
    head = dims * 1000
    found = (counted.total() + head, counted.without_softmax_attention() + head)
    assert tuple(f'{macs / 1e9:.2f}' for macs in found) == printed


def test_parts_add_up():
    models = pytest.importorskip('mmlinattn.models')
    model = models.SOFTPlusPlus('tiny')
    counted = count_flops(model, torch.zeros(1, 3, 64, 96))
    parts = ['stages.0', 'stages.1', 'stages.2', 'stages.3', 'norm3']
    assert all(counted.total(part) for part in parts)
    assert sum(map(counted.total, parts)) == counted.total()
    assert counted.total('stages') == counted.total() - counted.total('norm3')
    assert total(*map(counted.by_kind, parts)) == counted.by_kind()


def test_batch():
    models = pytest.importorskip('mmlinattn.models')
    model = models.SOFTPlusPlus('tiny').to('meta')
    one, three = (
        count_flops(model, torch.zeros(batch, 3, 64, 96, device='meta')).by_kind()
        for batch in (1, 3)
    )
    # position tables are resized once for all images
    assert three.pop('resampling') == one.pop('resampling') > 0
    assert three == {kind: 3 * macs for kind, macs in one.items()}


def test_part_is_a_whole_name():
    counted = FlopCount({('a.1', 'conv'): 1, ('a.10', 'conv'): 2, ('', 'norm'): 4})
    assert counted.total('a.1') == 1
    assert counted.total('a') == 3
    assert counted.total() == 7
    assert counted.total('b') == 0


def test_without_softmax_attention():
    counted = FlopCount({('a', 'softmax_attention'): 3, ('a', 'linear'): 4})
    assert counted.without_softmax_attention() == 4
    assert counted.without_softmax_attention('a') == 4


class CallsForward(nn.Module):
    """A module that calls forward() by name, as mmdet and mmseg do."""

    def __init__(self):
        super().__init__()
        self.head = Call(lambda x: x @ x)

    def forward(self, x):
        return self.head.forward(x)


def test_forward_called_by_name():
    counted = count_flops(CallsForward(), torch.zeros(1, 1, 4, 4))
    assert counted.macs == {('head', 'matmul'): 4**3}


def test_forward_of_a_part():
    model = nn.ModuleDict(dict(a=nn.Linear(4, 4), b=nn.Linear(4, 4)))
    counted = count_flops(model, torch.zeros(1, 4), forward=lambda x: model['b'](x))
    assert (counted.total(), counted.total('b')) == (16, 16)


class Failing(nn.Module):
    def forward(self, x):
        raise RuntimeError('fails')


@pytest.mark.parametrize('last, fails', [(nn.ReLU(), False), (Failing(), True)])
def test_leaves_no_trace(last, fails):
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), last)
    model[1].eval()
    inverse = functional.softmax_free.newton_pinv
    if fails:
        with pytest.raises(RuntimeError, match='fails'):
            count_flops(model, torch.zeros(2, 4))
    else:
        count_flops(model, torch.zeros(2, 4))
    assert [m.training for m in model.modules()] == [True, True, False, True]
    assert not any('forward' in vars(module) for module in model.modules())
    assert functional.softmax_free.newton_pinv is inverse
    assert functional.newton_pinv is inverse
    assert torch.is_grad_enabled()
