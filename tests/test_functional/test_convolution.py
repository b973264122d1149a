import pytest
import torch
from torch.nn.functional import conv2d

from mmlinattn.functional import depthwise_conv2d

pytestmark = pytest.mark.modern


@pytest.mark.parametrize('channels_last', [False, True])
@pytest.mark.parametrize('side', [1, 9])
@pytest.mark.parametrize('shape', [(1, 1, 1, 1), (2, 3, 5, 7)])
def test_equals_torch(shape, side, channels_last):
    """Filters of each image are tested in InLine attention, by its official code."""
    x = torch.randn(shape, dtype=torch.float64)
    if channels_last:
        x = x.to(memory_format=torch.channels_last)
    weight = torch.randn(shape[1], 1, side, side, dtype=torch.float64)
    inputs = x.requires_grad_(), weight.requires_grad_()
    ours = depthwise_conv2d(*inputs)
    theirs = conv2d(*inputs, padding=side // 2, groups=shape[1])
    grad = torch.randn_like(theirs)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(
        torch.autograd.grad(ours, inputs, grad),
        torch.autograd.grad(theirs, inputs, grad),
    )
