"""What holds for every attention: sums over tokens in parts, as on a GPU, are those of
all tokens at once, and finite tokens have finite results and gradients."""

import pytest
import torch

from mmlinattn import functional as F
from mmlinattn.functional import tokens

ROTARY = dict(hw_shape=(5, 7), steps=2)


def random(*shape, dtype=torch.float64, scale=1):
    return (torch.randn(*shape, dtype=dtype) * scale).requires_grad_()


def attentions(**options):
    """By name, a function of queries, keys and values (2, 2, 35, 8)."""
    landmarks, features = random(2, 2, 6, 8, **options), random(12, 8, **options)
    weights = [random(1, 2, 8, 8, **options) for _ in range(2)]
    bias = random(2, 6, 35, **options)
    power = torch.full((2, 1, 8), 2.0)
    ssd = random(2, 35, 2, **options), random(2, **options)
    rows = dict(normalize='rows', ridge=0.01, relative_ridge=True, solver='cholesky')
    return {
        'efficient': F.efficient_attention,
        'focused': F.focused_linear_attention,
        'inline': F.inline_attention,
        'polaformer': lambda *x: F.polarity_aware_attention(*x, power),
        'relu': F.relu_linear_attention,
        'rank-augmented': lambda *x: F.rank_augmented_attention(*x, **ROTARY),
        'magnitude-aware': lambda *x: F.magnitude_aware_attention(*x, **ROTARY),
        'norm-aware': lambda *x: F.norm_aware_attention(*x, **ROTARY),
        'mlla': lambda *x: F.mlla_attention(*[y[:, 0] for y in x], (5, 7), 2),
        'vssd': lambda *x: F.non_causal_ssd(*[y[:, 0] for y in x], *ssd),
        'performer': lambda *x: F.performer_attention(*x, features),
        'nystrom': lambda *x: F.nystrom_attention(*x, landmarks, landmarks),
        'agent': lambda *x: F.agent_attention(*x, landmarks),
        'agent-bias': lambda *x: F.agent_attention(*x, landmarks, bias, bias.mT),
        'ttt': lambda *x: F.trained_swiglu(*x, *weights),
        'linear-softpp': lambda q, k, v: F.softmax_free_attention(
            q, landmarks, k + v, **rows
        ),
        'exact-diagonal': lambda q, k, v: F.linear_softmax_free_attention(
            q, landmarks, k + v
        ),
        'exact-windows': lambda q, k, v: F.linear_softmax_free_attention(
            q, landmarks, k + v, window=2, hw_shape=(5, 7)
        ),
    }


@pytest.mark.parametrize('size', (1, 5, 35), ids='{}-tokens'.format)
@pytest.mark.parametrize('name', attentions())
def test_parts(name, size, monkeypatch):
    function = attentions()[name]
    inputs = [random(2, 2, 35, 8) for _ in range(3)]
    expected = function(*inputs)
    grad = torch.randn_like(expected)
    expected_grads = torch.autograd.grad(expected, inputs, grad, allow_unused=True)
    calls = []
    monkeypatch.setattr(tokens, '_comes_whole', lambda x: calls.append(x))
    monkeypatch.setattr(tokens, '_TOKENS', size)
    result = function(*inputs)
    assert calls
    torch.testing.assert_close(result, expected)
    grads = torch.autograd.grad(result, inputs, grad, allow_unused=True)
    torch.testing.assert_close(grads, expected_grads)


@pytest.mark.parametrize('num_tokens', (1, 97, 1024, 3135, 67200))
def test_number_of_parts(num_tokens):
    x = torch.arange(num_tokens).view(1, -1, 1)
    parts = tokens._in_parts(x)
    assert torch.equal(parts.flatten(1, 2), x)
    assert parts.size(1) == 1 or parts.size(2) >= tokens._TOKENS
    if num_tokens == 67200:
        assert parts.size(1) > 100


def test_many_queries_are_left_to_softmax_attention(monkeypatch):
    monkeypatch.setattr(tokens, '_comes_whole', lambda x: False)
    q, k = random(1, 1, 129, 4), random(1, 1, 300, 4)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, k)
    monkeypatch.setattr(tokens, 'sum_over_tokens', None)
    torch.testing.assert_close(tokens.few_to_tokens_attention(q, k, k), expected)


@pytest.mark.parametrize('scale', (0, 1e-4, 2, 100))
@pytest.mark.parametrize('name', attentions())
def test_finite(name, scale):
    """Also where all tokens are the same, and where they are far from each other."""
    options = dict(dtype=torch.float32, scale=scale)
    inputs = [random(2, 2, 35, 8, **options) for _ in range(3)]
    result = attentions(**options)[name](*inputs)
    (100 * result).sum().backward()
    grads = [x.grad for x in inputs if x.grad is not None]
    assert all(x.isfinite().all() for x in (result, *grads))
