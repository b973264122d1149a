import pytest
import torch
from torch.nn.functional import conv2d

from mmlinattn.functional import depthwise_conv2d, dynamic_conv2d

pytestmark = pytest.mark.modern


def assert_equal(ours, theirs, inputs):
    """Values and gradients are."""
    grad = torch.randn_like(theirs)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(
        torch.autograd.grad(ours, inputs, grad),
        torch.autograd.grad(theirs, inputs, grad),
    )


@pytest.mark.parametrize('channels_last', [False, True])
@pytest.mark.parametrize('side', [1, 9])
@pytest.mark.parametrize('shape', [(1, 1, 1, 1), (2, 3, 5, 7)])
def test_equals_torch(shape, side, channels_last):
    x = torch.randn(shape, dtype=torch.float64)
    if channels_last:
        x = x.to(memory_format=torch.channels_last)
    weight = torch.randn(shape[1], 1, side, side, dtype=torch.float64)
    inputs = x.requires_grad_(), weight.requires_grad_()
    ours = depthwise_conv2d(*inputs)
    theirs = conv2d(*inputs, padding=side // 2, groups=shape[1])
    assert_equal(ours, theirs, inputs)


@pytest.mark.parametrize('side', [1, 5])
def test_filters_of_each_image(side):
    x = torch.randn(3, 2, 5, 7, dtype=torch.float64)
    filters = torch.randn(3, 2, side, side, dtype=torch.float64)
    inputs = x.requires_grad_(), filters.requires_grad_()
    options = dict(padding=side // 2, groups=2)
    pairs = zip(x.split(1), filters.unsqueeze(2))
    theirs = torch.cat([conv2d(*pair, **options) for pair in pairs])
    ours = dynamic_conv2d(*inputs)
    assert_equal(ours, theirs, inputs)
    # in a file, for other images
    example = torch.randn(1, 2, 3, 3), torch.randn(1, 2, side, side)
    traced = torch.jit.trace(dynamic_conv2d, example)
    torch.testing.assert_close(traced(*inputs), theirs)


def test_gradients_keep_their_dtype_under_autocast():
    x = torch.randn(1, 2, 4, 4, requires_grad=True)
    weight = torch.randn(2, 1, 3, 3, requires_grad=True)
    with torch.autocast('cpu', dtype=torch.bfloat16):
        out = depthwise_conv2d(x, weight)
    assert out.dtype == torch.bfloat16
    out.sum().backward()
    assert x.grad.dtype == weight.grad.dtype == torch.float32
