"""ReLU linear attention as a matrix, and its heads of several scales.

Legend: B batch, h heads, N tokens, d head dim, C = h * d channels.
"""

import pytest
import torch
from equations import tokens
from torch.autograd import gradcheck
from torch.nn.functional import pad

from mmlinattn.functional import relu_linear_attention
from mmlinattn.models import MultiScaleLinearAttention


def plain(q, k, v):
    """In quadratic order: rows of nonnegative products, divided by their sums."""
    weights = q.clamp(min=0) @ k.clamp(min=0).mT
    return weights / (weights.sum(-1, keepdim=True) + 1e-15) @ v


@pytest.mark.parametrize(
    'shape', ((2, 3, 35, 4), (1, 1, 1, 6), (2, 2, 7, 1), (1, 2, 5, 16)), ids=str
)
def test_values_and_gradients(shape):
    arguments = [tokens(*shape).requires_grad_() for _ in range(3)]
    out, expected = relu_linear_attention(*arguments), plain(*arguments)
    torch.testing.assert_close(out, expected)
    grad = torch.randn_like(out)
    torch.testing.assert_close(
        torch.autograd.grad(out, arguments, grad),
        torch.autograd.grad(expected, arguments, grad),
    )


def test_second_gradients():
    q, k, v = [tokens(1, 2, 3, 4).requires_grad_() for _ in range(3)]
    assert gradcheck(relu_linear_attention, (q, k, v))


def test_a_query_without_positive_channels_gets_zeros():
    q, k, v = [tokens(1, 1, 5, 4) for _ in range(3)]
    q[..., 2, :] = -1
    out = relu_linear_attention(q, k, v)
    assert not out[..., 2, :].any() and out[..., 1, :].all()


@pytest.mark.parametrize('dtype', (torch.float16, torch.bfloat16))
def test_sums_beyond_half_precision(dtype):
    """float16 ends at 65504, and a sum over tokens goes further."""
    q, k, v = [30 * tokens(1, 2, 4096, 16).abs() for _ in range(3)]
    half = [x.to(dtype) for x in (q, k, v)]
    assert (half[0].double() * half[1].double().sum(-2, keepdim=True)).sum() > 65504
    out = relu_linear_attention(*half)
    assert out.dtype == dtype
    expected = plain(*(x.double() for x in half))
    torch.testing.assert_close(out.double(), expected, rtol=1e-2, atol=1e-2)


def paper_scale(layer, qkv, hw_shape):
    """A depthwise convolution written as a sum of shifted maps, extra tokens left out,
    and a matrix for each head of queries, keys and values."""
    side = layer.depthwise.weight.size(-1)
    num_extra = qkv.size(1) - hw_shape[0] * hw_shape[1]
    maps = pad(qkv[:, num_extra:].mT.unflatten(-1, hw_shape), (side // 2,) * 4)
    out = sum(
        weight * maps[..., i : i + hw_shape[0], j : j + hw_shape[1]]
        for i, row in enumerate(layer.depthwise.weight[:, 0].unbind(1))
        for j, weight in enumerate(row[..., None, None].unbind(1))
    )
    out = torch.cat((qkv[:, :num_extra], out.flatten(2).mT), 1)
    dims = layer.pointwise.weight.size(1)
    matrices = layer.pointwise.weight.flatten(1).split(dims)
    heads = [x @ matrix.mT for x, matrix in zip(out.split(dims, -1), matrices)]
    return torch.cat(heads, -1)


@pytest.mark.parametrize('scales', ((5,), (3, 7), ()), ids=str)
@pytest.mark.parametrize(
    'hw_shape, num_extra', (((5, 7), 0), ((6, 4), 3), ((1, 1), 0)), ids=str
)
def test_module(scales, hw_shape, num_extra):
    module = MultiScaleLinearAttention(24, 4, scales).double()
    x = tokens(2, num_extra + hw_shape[0] * hw_shape[1], 24)
    qkv = x @ module.qkv.weight.mT
    heads = []
    for part in (qkv, *[paper_scale(x, qkv, hw_shape) for x in module.aggregations]):
        # channels of a query, a key and a value for each head
        q, k, v = part.unflatten(-1, (4, 3, 6)).permute(3, 0, 2, 1, 4)
        heads.append(plain(q, k, v).transpose(1, 2).flatten(2))
    expected = torch.cat(heads, -1) @ module.proj.weight.mT + module.proj.bias
    torch.testing.assert_close(module(x, hw_shape), expected)
