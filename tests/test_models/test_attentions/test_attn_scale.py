"""What AttnScale is in every attention that forms, or could form, a matrix."""

import pytest
import torch
from torch import nn

from mmlinattn.models import SoftmaxAttention, TalkingHeadsAttention, WindowAttention

pytestmark = pytest.mark.modern

HW_SHAPE = (5, 6)
ATTENTIONS = dict(
    softmax=(SoftmaxAttention, dict()),
    windows=(WindowAttention, dict(window_size=4)),
    shifted_windows=(WindowAttention, dict(window_size=4, shift_size=2)),
    talking_heads=(TalkingHeadsAttention, dict()),
)
ALL = pytest.mark.parametrize('name', ATTENTIONS)


def build(name, **options):
    kind, own = ATTENTIONS[name]
    module = kind(12, 3, **own, **options)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)
    return module.double().eval()


def tokens(batch=2):
    return torch.randn(batch, 30, 12, dtype=torch.float64)


@ALL
def test_identity_at_start(name):
    plain, scaled = build(name), build(name, attn_scale=True)
    scaled.load_state_dict(dict(plain.state_dict(), omega=torch.zeros(3)))
    x = tokens()
    assert scaled(x, HW_SHAPE).equal(plain(x, HW_SHAPE))


def test_softmax_attention_matches_the_explicit_matrix():
    module = build('softmax', attn_scale=True)
    x = tokens().requires_grad_()
    q, k, v = (module.split_heads(part) for part in module.qkv(x).chunk(3, -1))
    low = torch.full((30, 30), 1 / 30, dtype=torch.float64)
    weights = (q @ k.mT / 2).softmax(-1)
    weights = low + (1 + module.omega[:, None, None]) * (weights - low)
    expected = module.proj(module.merge_heads(weights @ v))
    out = module(x, HW_SHAPE)
    weight = torch.randn_like(out)
    results, wanted = (
        [y, *torch.autograd.grad((y * weight).sum(), [x, *module.parameters()])]
        for y in (out, expected)
    )
    for result, want in zip(results, wanted):
        assert (result - want).abs().max() <= 1e-6 * want.abs().max()


@ALL
def test_dropout_keeps_the_mean(name):
    """Dropped weights, then scaled: on average the scaled ones without dropout."""
    module = build(name, attn_scale=True, attn_drop=0.3)
    nn.init.constant_(module.omega, 0.8)
    x = tokens(1)
    expected = module(x, HW_SHAPE)[0]
    num = 4096
    with torch.no_grad():
        outs = module.train()(x.expand(num, -1, -1), HW_SHAPE)
    std = outs.std(0)
    assert (std > 0).all()
    assert ((outs.mean(0) - expected).abs() < 5 * std / num**0.5).all()
