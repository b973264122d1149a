"""Attentions replaced by their mean over tokens.

Legend: B batch, N tokens, C channels.
"""

import warnings

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from mmlinattn.analysis import (
    averaged_attention,
    hc_proportion,
    varying_share,
    varying_shares,
    watch,
)
from mmlinattn.models import BaseAttention, CaiT, SwinTransformer, VisionTransformer
from mmlinattn.registry import MODELS

# without parts beside `attend`, so that the last projection sees its output alone
BARE = {
    'softmax': dict(type='SoftmaxAttention'),
    'efficient': dict(type='EfficientAttention'),
    'linear': dict(
        type='SoftmaxFreeAttention',
        kernel_size=0,
        sampling_ratio=2,
        num_landmarks=9,
        attn_norm='rows',
        solver='cholesky',
        ridge=0.001,
        relative_ridge=True,
    ),
    'windows': dict(type='WindowAttention', window_size=4),
    'shifted windows': dict(type='WindowAttention', window_size=4, shift_size=2),
    'one window': dict(type='WindowAttention', window_size=16),
}
ARCH = dict(embed_dims=16, num_layers=2, num_heads=2)


def projected(module, x, hw_shape):
    """What the last projection of an attention sees."""
    seen = []
    handle = module.proj.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    module(x, hw_shape)
    handle.remove()
    return seen[0]


def named(model, kind):
    return [module for module in model.modules() if isinstance(module, kind)]


def test_both_parts_make_the_whole():
    x = torch.randn(2, 3, 7, 5, dtype=torch.float64)
    mean = x.mean(-2, keepdim=True).expand_as(x)
    rest = (mean.square().sum((-2, -1)) / x.square().sum((-2, -1))).sub(1).neg()
    torch.testing.assert_close(varying_share(x), rest)
    torch.testing.assert_close(varying_share(x), hc_proportion(x) ** 2)
    assert varying_share(mean).abs().max() < 1e-12
    torch.testing.assert_close(varying_share(x - mean), torch.ones_like(rest))


@pytest.mark.parametrize('options', BARE.values(), ids=BARE)
def test_every_token_gets_the_mean(options):
    """Of the map's tokens: windows of 4 pad 6 x 9 tokens to 8 x 12."""
    module = MODELS.build(dict(options, embed_dims=8, num_heads=2)).double().eval()
    x = torch.randn(2, 54, 8, dtype=torch.float64)
    outside = projected(module, x, (6, 9))
    with averaged_attention(module), varying_shares(module) as shares:
        inside = projected(module, x, (6, 9))
    mean = outside.mean(1, keepdim=True)
    assert varying_share(outside).min() > 1e-6
    torch.testing.assert_close(inside, mean.expand_as(outside))
    assert max(share.max() for share in shares['']) < 1e-12
    with varying_shares(module) as shares:
        module(x, (6, 9))
    expected = varying_share(outside).float()
    torch.testing.assert_close(shares[''][0], expected, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize(
    'name', [k for k, x in MODELS.module_dict.items() if issubclass(x, BaseAttention)]
)
def test_every_attention(name):
    """Gradients arrive, and each call is noted once."""
    module = MODELS.build(dict(type=name, embed_dims=24, num_heads=4)).eval()
    x = torch.randn(2, 14 * 28, 24, requires_grad=True)
    with varying_shares(module) as shares, averaged_attention(module):
        module(x, (14, 28)).square().sum().backward()
    assert [share.shape for share in shares['']] == [(2,)]
    assert x.grad.isfinite().all() and x.grad.abs().sum() > 0


def test_a_model_that_asks_nothing_scores_the_same():
    """Queries of zero give every key one weight."""
    model = VisionTransformer(ARCH, img_size=32, patch_size=8).eval()
    images = torch.randn(2, 3, 32, 48)
    before = model(images)[0]
    with averaged_attention(model):
        assert (model(images)[0] - before).abs().max() > 1e-3
    for module in named(model, BaseAttention):
        nn.init.zeros_(module.qkv.weight[:16].detach())
        nn.init.zeros_(module.qkv.bias[:16].detach())
    expected = model(images)[0]
    with averaged_attention(model), varying_shares(model) as shares:
        torch.testing.assert_close(model(images)[0], expected, rtol=1e-4, atol=1e-4)
    assert list(shares) == ['blocks.0.attn', 'blocks.1.attn']


def test_the_class_attention_of_one_query_stays():
    arch = dict(ARCH, num_class_layers=1)
    model = CaiT(arch, img_size=32, out_type='cls_token').eval()
    (module,) = [x for x in named(model, BaseAttention) if 'Class' in type(x).__name__]
    for parameter in model.parameters():  # LayerScale begins near zero
        nn.init.normal_(parameter)
    images = torch.randn(1, 3, 32, 32)
    expected = model(images)[0]
    with averaged_attention(model, [module]):
        torch.testing.assert_close(model(images)[0], expected)
    with averaged_attention(model):
        assert (model(images)[0] - expected).abs().max() > 1e-4


def test_contexts_inside_of_each_other_and_what_stays():
    model = SwinTransformer(dict(embed_dims=8, depths=[2, 1], num_heads=[2, 4])).eval()
    images, calls = torch.randn(1, 3, 40, 56), []
    before = [dict(vars(module)) for module in model.modules()]
    with watch(model, calls.append), averaged_attention(model):
        inside = model(images)
    with averaged_attention(model), watch(model, calls.append):
        torch.testing.assert_close(model(images), inside)
    assert len(calls) == 6
    with pytest.raises(ZeroDivisionError), averaged_attention(model):
        1 / 0  # noqa: B018
    for module, own in zip(model.modules(), before):
        assert vars(module).keys() == own.keys()
        assert not module._forward_hooks and not module._forward_pre_hooks


class Foreign(nn.Module):
    """A model of another library."""

    def __init__(self, batch_first):
        super().__init__()
        self.attn = nn.MultiheadAttention(8, 2, batch_first=batch_first)
        self.plain = nn.Linear(8, 8)
        self.conv = nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x):
        turned = x if self.attn.batch_first else x.transpose(0, 1)
        out, weights = self.attn(turned, turned, turned)
        out = out if self.attn.batch_first else out.transpose(0, 1)
        maps = x.mT.unflatten(-1, (3, -1))
        return out, weights, self.plain(x), self.conv(maps)


@pytest.mark.parametrize('batch_first', [False, True])
def test_modules_of_other_libraries(batch_first):
    """The first of several outputs, tokens where the module has them, maps."""
    model, x = Foreign(batch_first).eval(), torch.randn(2, 12, 8)
    out, weights, plain, maps = model(x)
    with averaged_attention(model, [model.attn, model.plain]):
        inside = model(x)
    mean, plain_mean = (y.mean(1, keepdim=True).expand_as(y) for y in (out, plain))
    for a, b in zip(inside, (mean, weights, plain_mean, maps)):
        torch.testing.assert_close(a, b)
    context = averaged_attention(model, [model.conv], token_axes=(2, 3))
    with context, varying_shares(model, [model.conv], (-2, -1)) as shares:
        inside = model(x)[-1]
    torch.testing.assert_close(inside, maps.mean((2, 3), True).expand_as(maps))
    assert shares['conv'][0].shape == (2,) and shares['conv'][0].max() < 1e-6
    with varying_shares(model, [model.conv], token_axes=(2, 3)) as shares:
        model(x)
    expected = varying_share(maps.flatten(2).mT)
    torch.testing.assert_close(shares['conv'][0], expected)


def test_scores_of_a_model_that_looks_up():
    """The value of the only equal key, which a mean cannot give."""

    class LookUp(nn.Module):
        def forward(self, x):
            keys, values = x.split(6, -1)
            return scaled_dot_product_attention(keys, keys, values, scale=50.0)

    model = nn.Sequential(LookUp())
    keys = torch.eye(6).expand(4, -1, -1)
    values = torch.randint(2, (4, 6, 1)).float()
    x = torch.cat((keys, values), -1)
    torch.testing.assert_close(model(x), values)
    with averaged_attention(model, [model[0]]):
        torch.testing.assert_close(model(x), values.mean(1, True).expand_as(values))


@pytest.mark.parametrize(
    'choose, fault',
    [
        (lambda model: [], 'got none'),
        (lambda model: [nn.ReLU()], r"got \['ReLU'\]"),
        (lambda model: None, 'Foreign has no attention of mmlinattn'),
        (lambda model: [model.conv], r'output of conv .* \[2, 8, 3, 4\]'),
    ],
)
def test_wrong_attentions(choose, fault):
    model = Foreign(True)
    refused = pytest.raises(ValueError, match=fault)
    with refused, averaged_attention(model, choose(model)):
        model(torch.randn(2, 12, 8))


@pytest.mark.openmmlab  # a newer torch does not fuse layers with hooks inside
def test_attentions_that_are_not_called():
    """Such as those of a layer that PyTorch fuses where no gradient is wanted."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    x = torch.randn(1, 5, 8)
    attentions = [layer.self_attn]
    warning = pytest.warns(UserWarning, match='1 of 1 .* self_attn')
    with warning, torch.no_grad(), averaged_attention(layer, attentions):
        layer(x)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        with averaged_attention(layer, attentions):
            layer(x)


@pytest.mark.openmmlab
def test_pvt_v2_of_mmdet():
    """Its shortcuts are inside of the modules around PyTorch's attention."""
    from mmdet.models import PyramidVisionTransformerV2

    model = PyramidVisionTransformerV2(
        embed_dims=8, num_layers=[1, 1, 1, 1], num_heads=[1, 1, 1, 1]
    ).eval()
    attentions = named(model, nn.MultiheadAttention)
    images = torch.randn(2, 3, 64, 64)
    expected = model(images)
    context = averaged_attention(model, attentions)
    with torch.no_grad(), context, varying_shares(model, attentions) as shares:
        inside = model(images)
    assert (inside[-1] - expected[-1]).abs().max() > 1e-4
    assert len(shares) == 4
    assert max(float(x.max()) for calls in shares.values() for x in calls) < 1e-5
