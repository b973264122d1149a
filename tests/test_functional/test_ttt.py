"""One step of training, taken by autograd, image by image and head by head.

Legend: B batch, h heads, (H, W) map, N tokens, d head dim.
"""

import pytest
import torch
from torch.nn.functional import conv2d, silu

from mmlinattn.functional import trained_conv, trained_swiglu

pytestmark = pytest.mark.modern


def tokens(*shape):
    return torch.randn(shape, dtype=torch.float64)


def step(loss, weights, dim):
    """Weights after a step, each column of the gradient clipped."""
    gradients = torch.autograd.grad(loss, weights)
    return [
        w.detach() - g / (g.norm(dim=dim, keepdim=True) + 1)
        for w, g in zip(weights, gradients)
    ]


@pytest.mark.parametrize('num_tokens, dims', ((12, 6), (1, 1), (35, 8)))
def test_swiglu(num_tokens, dims):
    q, k, v = 3 * tokens(3, 2, 4, num_tokens, dims)
    w1, w2 = tokens(2, 1, 4, dims, dims)
    out = trained_swiglu(q, k, v, w1, w2)

    def network(x, a, b):
        return (x @ a) * silu(x @ b)

    for image in range(2):
        for head in range(4):
            at = image, head
            weights = [w[0, head].clone().requires_grad_() for w in (w1, w2)]
            loss = -(network(k[at], *weights) * v[at]).sum() / (3 * num_tokens)
            expected = network(q[at], *step(loss, weights, 0))
            torch.testing.assert_close(out[at], expected)


@pytest.mark.parametrize('hw_shape', ((5, 7), (1, 1), (2, 9)), ids=str)
def test_conv(hw_shape):
    q, k, v = 3 * tokens(3, 2, 6, *hw_shape)
    weight = tokens(6, 1, 3, 3)
    out = trained_conv(q, k, v, weight)

    def network(x, w):
        return conv2d(x[None], w, padding=1, groups=6)[0]

    for image in range(2):
        weights = [weight.clone().requires_grad_()]
        loss = -(network(k[image], *weights) * v[image]).mean((-2, -1)).sum() / 3
        (trained,) = step(loss, weights, (-2, -1))
        torch.testing.assert_close(out[image], network(q[image], trained))


def test_half_precision_is_computed_in_float32():
    q, k, v = tokens(3, 1, 2, 9, 4).bfloat16()
    w1, w2 = tokens(2, 1, 2, 4, 4).float()
    out = trained_swiglu(q, k, v, w1, w2)
    exact = trained_swiglu(q.float(), k.float(), v.float(), w1, w2)
    assert out.dtype == torch.bfloat16 and out.equal(exact.bfloat16())
