"""Attentions whose cost is linear in N, against their N x N matrices.

Legend: B batch, h heads, N tokens, m features, landmarks or agents, d head dim.
"""

import pytest
import torch
from equations import tokens
from mmengine.utils import digit_version

from mmlinattn.functional import (
    agent_attention,
    efficient_attention,
    focused_linear_attention,
    inline_attention,
    iterative_pinv,
    nystrom_attention,
    orthogonal_features,
    performer_attention,
    polarity_aware_attention,
)

# (B, h, N, m, d)
SHAPES = ((2, 3, 35, 9, 5), (1, 1, 1, 1, 1), (1, 2, 6, 17, 8), (2, 1, 130, 4, 3))


def normalized(kernel):
    return kernel / kernel.sum(-1, keepdim=True)


def efficient_matrix(q, k):
    return q.softmax(-1) @ k.softmax(-2).mT


def focused_matrix(q, k, scale, factor=3):

    def phi(x):  # all heads of a token together
        x = (x.relu() + 1e-6) / scale
        power = x**factor
        lengths, powers = (t.square().sum((1, 3), keepdim=True) for t in (x, power))
        return power * (lengths / powers) ** 0.5

    kernel = phi(q) @ phi(k).mT
    return kernel / (kernel.sum(-1, keepdim=True) + 1e-6 * k.size(-2))


def inline_matrix(q, k):
    products = q @ k.mT / q.size(-1) ** 0.5
    return (products - products.mean(-1, keepdim=True) + 1) / k.size(-2)


def polarity_matrices(q, k, power, scale):
    """The matrices of the first and of the second half of the values."""
    (q_pos, q_neg), (k_pos, k_neg) = (
        [(sign * x / scale).relu() ** power for sign in (1, -1)] for x in (q, k)
    )
    kernels = (q_pos @ k_pos.mT + q_neg @ k_neg.mT, q_neg @ k_pos.mT + q_pos @ k_neg.mT)
    return [x / (x.sum(-1, keepdim=True) + 1e-6 * k.size(-2)) for x in kernels]


def performer_matrix(q, k, features):

    def phi(x):
        x = x / x.size(-1) ** 0.25
        lengths = x.square().sum(-1, keepdim=True)
        return (x @ features.mT - lengths / 2).exp() / len(features) ** 0.5

    return normalized(phi(q) @ phi(k).mT)


def softmax_matrix(q, k, bias=0):
    return (q @ k.mT / q.size(-1) ** 0.5 + bias).softmax(-1)


def nystrom_matrix(q, k, q_landmarks, k_landmarks):
    a = softmax_matrix(q_landmarks, k_landmarks)
    eye = torch.eye(a.size(-1), dtype=a.dtype)
    z = torch.zeros_like(a)
    for index in torch.cartesian_prod(*map(torch.arange, a.shape[:2])).tolist():
        matrix = a[tuple(index)]
        inverse = matrix.T / (
            torch.linalg.norm(matrix, 1) * torch.linalg.norm(matrix, float('inf'))
        )
        for _ in range(6):
            product = matrix @ inverse
            inner = 15 * eye - product @ (7 * eye - product)
            inverse = inverse @ (13 * eye - product @ inner) / 4
        z[tuple(index)] = inverse
    return softmax_matrix(q, k_landmarks) @ z @ softmax_matrix(q_landmarks, k)


def agent_matrix(q, k, agents, agent_bias, query_bias):
    return softmax_matrix(q, agents, query_bias) @ softmax_matrix(agents, k, agent_bias)


# function, its matrix, and the arguments of both besides queries, keys and values
ATTENTIONS = {
    'efficient': (efficient_attention, efficient_matrix, lambda *shape: ()),
    'focused': (
        lambda q, k, v, scale: focused_linear_attention(q, k, v, 3, scale),
        focused_matrix,
        lambda b, h, n, m, d: (tokens(h, 1, d).abs() + 0.5,),
    ),
    'inline': (inline_attention, inline_matrix, lambda *shape: ()),
    'polarity': (
        polarity_aware_attention,
        polarity_matrices,
        lambda b, h, n, m, d: (tokens(h, 1, d).abs() + 1, tokens(h, 1, d).abs() + 0.5),
    ),
    'performer': (
        performer_attention,
        performer_matrix,
        lambda b, h, n, m, d: (tokens(m, d),),
    ),
    'nystrom': (
        nystrom_attention,
        nystrom_matrix,
        lambda b, h, n, m, d: (tokens(b, h, m, d), tokens(b, h, m, d)),
    ),
    'agent': (
        agent_attention,
        agent_matrix,
        lambda b, h, n, m, d: (
            tokens(b, h, m, d),
            tokens(1, h, m, n),
            tokens(1, h, n, m),
        ),
    ),
}
NAMES = pytest.mark.parametrize('name', ATTENTIONS)


def inputs(name, shape):
    b, h, n, m, d = shape
    d *= 1 + (name == 'polarity')  # whose values have two halves
    others = ATTENTIONS[name][2](b, h, n, m, d)
    return [tokens(b, h, n, d) for _ in range(3)], others


@pytest.mark.parametrize('shape', SHAPES, ids=str)
@NAMES
def test_matches_the_paper(name, shape):
    function, matrix, _ = ATTENTIONS[name]
    (q, k, v), others = inputs(name, shape)
    result = function(q, k, v, *others)
    matrices = matrix(q, k, *others)
    matrices = matrices if isinstance(matrices, list) else [matrices]
    parts = zip(matrices, v.chunk(len(matrices), -1))
    torch.testing.assert_close(result, torch.cat([a @ x for a, x in parts], -1))


@pytest.mark.parametrize('autocast', (False, True))
@NAMES
def test_half_precision(name, autocast):
    """The result is as exact as the inputs: the arithmetic adds next to nothing."""
    function = ATTENTIONS[name][0]
    # few tokens a landmark: a pseudo-inverse of 9 of 35 tokens doubles errors
    qkv, others = inputs(name, (2, 3, 35, 2, 8))
    half = [x.bfloat16() for x in (*qkv, *others)]
    expected = function(*(x.double() for x in half))
    with torch.autocast('cpu', torch.bfloat16, enabled=autocast):
        result = function(*half)
    assert result.dtype == torch.bfloat16
    error = (result.double() - expected).norm() / expected.norm()
    assert error < 0.01


@pytest.mark.skipif(
    digit_version(torch.__version__) < digit_version('2.5'),
    reason='no float16 on the CPU',
)
@pytest.mark.parametrize('name', ('efficient', 'focused', 'inline', 'performer'))
def test_a_large_flat_map_in_float16(name):
    """A weight of 1 / 70,000 is below float16's normal numbers, a sum of as
    many values beyond its range."""
    qkv = torch.ones(3, 1, 1, 70000, 4, dtype=torch.float16)
    others = (torch.ones(2, 4, dtype=torch.float16),) * (name == 'performer')
    if name == 'focused':
        others = (torch.ones(1, 1, 4, dtype=torch.float16),)
    result = ATTENTIONS[name][0](*(5 * qkv), *others)
    torch.testing.assert_close(result, 5 * qkv[0])


def test_no_channel_of_a_sign():
    """The half of the values without any weight is zero, as in the official code."""
    q, k, v = tokens(3, 1, 1, 6, 4)
    ones = torch.ones(1, 1, 4, dtype=q.dtype)
    out = polarity_aware_attention(q.abs(), k.abs(), v, ones)
    assert out[..., :2].all() and not out[..., 2:].any()


def test_orthogonal_features():
    features = orthogonal_features(10, 4)
    assert features.shape == (10, 4)
    for group in features.split(4):
        gram = group @ group.mT
        off_diagonal = gram - gram.diagonal().diag()
        torch.testing.assert_close(
            off_diagonal, torch.zeros_like(gram), atol=1e-5, rtol=0
        )
    square_lengths = orthogonal_features(4000, 4).square().sum(-1)
    assert square_lengths.mean() == pytest.approx(4, rel=0.1)


def test_iterative_pinv_of_each_matrix_by_itself():
    a = tokens(5, 5).softmax(-1) + torch.eye(5)
    stack = torch.stack((a, 1e6 * a))
    inverses = iterative_pinv(stack)
    torch.testing.assert_close(inverses[:1], iterative_pinv(stack[:1]))
    torch.testing.assert_close(iterative_pinv(stack, 20), torch.linalg.pinv(stack))
