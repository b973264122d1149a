"""Legend: B batch, h heads, N tokens, d head dim."""

import pytest
import torch
from torch import nn

from mmlinattn.models import ClassAttention, TalkingHeadsAttention

pytestmark = pytest.mark.modern


def build(kind, **options):
    module = kind(12, 3, **options)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)
    return module.double().eval()


def assert_close(result, expected):
    assert (result - expected).abs().max() <= 1e-6 * expected.abs().max()


def explicit_talking_heads(module, x):
    """The equation; scaling comes after the second mix."""
    q, k, v = (part.unflatten(-1, (3, 4)) for part in module.qkv(x).split(12, dim=-1))
    logits = torch.einsum('bnhd,bmhd->bhnm', q, k) / 2  # sqrt(d)
    first, second = module.mix_logits, module.mix_weights
    logits = (
        torch.einsum('gh,bhnm->bgnm', first.weight, logits) + first.bias[:, None, None]
    )
    weights = (
        torch.einsum('gh,bhnm->bgnm', second.weight, logits.softmax(-1))
        + second.bias[:, None, None]
    )
    if module.omega is not None:
        low = 1 / x.size(1)
        weights = low + (1 + module.omega[:, None, None]) * (weights - low)
    return module.proj(torch.einsum('bhnm,bmhd->bnhd', weights, v).flatten(2))


@pytest.mark.parametrize('attn_scale', (False, True))
@pytest.mark.parametrize('qkv_bias', (False, True))
@pytest.mark.parametrize('num_extra', (0, 1))
def test_talking_heads_match_the_equation(num_extra, qkv_bias, attn_scale):
    module = build(TalkingHeadsAttention, qkv_bias=qkv_bias, attn_scale=attn_scale)
    x = torch.randn(2, num_extra + 35, 12, dtype=torch.float64, requires_grad=True)
    # the first mix's bias is one number for a whole row, softmax ignores it
    inputs = [x] + [
        p for name, p in module.named_parameters() if name != 'mix_logits.bias'
    ]
    out, expected = module(x, (5, 7)), explicit_talking_heads(module, x)
    assert_close(out, expected)
    weight = torch.randn_like(out)
    for result, want in zip(
        *(torch.autograd.grad((y * weight).sum(), inputs) for y in (out, expected))
    ):
        assert_close(result, want)


@pytest.mark.parametrize('qkv_bias', (False, True))
def test_class_attention_matches_the_equation(qkv_bias):
    module = build(ClassAttention, qkv_bias=qkv_bias)
    x = torch.randn(2, 36, 12, dtype=torch.float64)
    query = module.q(x[:, :1])
    key, value = module.kv(x).split(12, dim=-1)
    heads = []
    for head in range(3):
        part = slice(4 * head, 4 * (head + 1))
        attn = (query[..., part] @ key[..., part].mT / 2).softmax(-1)
        heads.append(attn @ value[..., part])
    out = module(x, (5, 7))
    assert_close(out[:, :1], module.proj(torch.cat(heads, -1)))
    assert out[:, 1:].equal(x[:, 1:])


@pytest.mark.parametrize('kind', (TalkingHeadsAttention, ClassAttention))
def test_dropout_only_in_training(kind):
    module = build(kind, attn_drop=0.5)
    x = torch.randn(2, 36, 12, dtype=torch.float64)
    assert module(x, (5, 7)).equal(module(x, (5, 7)))
    module.train()
    assert not module(x, (5, 7)).equal(module(x, (5, 7)))


def test_class_attention_cannot_be_scaled():
    with pytest.raises(ValueError, match='attn_scale must be False'):
        ClassAttention(12, 3, attn_scale=True)
