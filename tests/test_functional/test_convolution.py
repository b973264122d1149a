"""The gradient of dynamic filters, beside PyTorch's own."""

import pytest
import torch
from equations import tokens

from mmlinattn.functional.convolution import dynamic_conv2d, filters_gradient


@pytest.mark.parametrize('side', (1, 3, 5))
def test_gradient_of_filters(side):
    x, grad = tokens(2, 3, 5, 4), tokens(2, 3, 5, 4)
    filters = torch.zeros(2, 3, side, side, dtype=x.dtype, requires_grad=True)
    (wanted,) = torch.autograd.grad(dynamic_conv2d(x, filters), filters, grad)
    torch.testing.assert_close(filters_gradient(x, grad, side), wanted)
    maps = [y.requires_grad_() for y in (x, grad)]
    check = torch.autograd.gradcheck
    assert check(lambda *y: filters_gradient(*y, side), maps, check_forward_ad=True)


def test_gradient_of_filters_in_a_trace():
    """A file has products of shifted maps."""
    x, grad = tokens(2, 3, 5, 4), tokens(2, 3, 5, 4)
    traced = torch.jit.trace(lambda *y: filters_gradient(*y, 3), (x, grad))
    assert 'convolution_backward' not in str(traced.graph)
    torch.testing.assert_close(traced(x, grad), filters_gradient(x, grad, 3))
