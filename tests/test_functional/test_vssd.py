"""Non-causal state space duality as a matrix, head by head.

Legend: h heads, N tokens, n channels of queries and keys, d channels of a head.
"""

import pytest
import torch
from equations import tokens
from torch.autograd import gradcheck

from mmlinattn.functional import non_causal_ssd


def plain(q, k, v, weights, skip):
    """A head's matrix is Q K^T, its columns times w, and D on the diagonal."""
    num_heads, eye = len(skip), torch.eye(q.size(1), dtype=q.dtype)
    outs = [
        (q @ k.mT * w[:, None, :] + factor * eye) @ values
        for values, w, factor in zip(v.chunk(num_heads, -1), weights.unbind(-1), skip)
    ]
    return torch.cat(outs, -1)


def inputs(num_tokens=35, num_heads=3, dims=4, states=5):
    """Queries, keys, values, positive weights, and factors of the heads' values."""
    shapes = [(states,), (states,), (num_heads * dims,), (num_heads,)]
    q, k, v, weights = [tokens(2, num_tokens, *shape) for shape in shapes]
    return q, k, v, weights.exp(), tokens(num_heads)


@pytest.mark.parametrize(
    'sizes', ((35, 3, 4, 5), (1, 1, 6, 2), (7, 4, 1, 3), (20, 2, 3, 1)), ids=str
)
def test_values_and_gradients(sizes):
    arguments = [x.requires_grad_() for x in inputs(*sizes)]
    out, expected = non_causal_ssd(*arguments), plain(*arguments)
    torch.testing.assert_close(out, expected)
    grad = torch.randn_like(out)
    torch.testing.assert_close(
        torch.autograd.grad(out, arguments, grad),
        torch.autograd.grad(expected, arguments, grad),
    )


def test_second_gradients():
    arguments = [x.requires_grad_() for x in inputs(3, 2, 2, 2)]
    assert gradcheck(non_causal_ssd, arguments)


@pytest.mark.parametrize('dtype', (torch.float16, torch.bfloat16))
def test_sums_beyond_half_precision(dtype):
    """Nothing divides a sum over tokens; float16 ends at 65504."""
    q, k, v, weights, skip = inputs(4096)
    arguments = [x.to(dtype) for x in (q.abs(), k.abs(), v.abs(), 9 * weights, skip)]
    out = non_causal_ssd(*arguments)
    assert out.dtype == torch.float32 and out.max() > 65504
    expected = non_causal_ssd(*(x.double() for x in arguments))
    torch.testing.assert_close(out.double(), expected, rtol=1e-4, atol=1e-2)
