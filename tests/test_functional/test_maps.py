"""Tokens as maps, and back."""

import pytest
import torch
from torch import nn

from mmlinattn.functional.maps import to_map, to_tokens

CHANNELS, SIZE = 32, (3, 5)


@pytest.mark.parametrize('num_images', (1, 2))
def test_maps_and_tokens(num_images):
    tokens = torch.randn(num_images, 2, SIZE[0] * SIZE[1], CHANNELS)
    maps = to_map(tokens, SIZE)
    expected = tokens.transpose(-2, -1).unflatten(-1, SIZE)
    torch.testing.assert_close(maps, expected, rtol=0, atol=0)
    torch.testing.assert_close(to_tokens(maps), tokens, rtol=0, atol=0)


# the gradient of an image as other layers lay it out
@pytest.mark.parametrize('training', (False, True), ids=('eval', 'train'))
@pytest.mark.parametrize(
    'strides', [(480, 15, 5, 1), (480, 1, 160, 32), (32, 1, 160, 32), (15, 15, 5, 1)]
)
def test_gradients_of_a_norm_behind_a_map_of_one_image(strides, training):
    norm = nn.BatchNorm2d(CHANNELS).double().train(training)
    tokens = torch.randn(1, SIZE[0] * SIZE[1], CHANNELS).double().requires_grad_()
    plain = tokens.detach().mT.unflatten(-1, SIZE).contiguous().requires_grad_()
    grad = torch.empty_strided((1, CHANNELS, *SIZE), strides, dtype=torch.float64)
    grad.normal_()
    norm(to_map(tokens, SIZE)).backward(grad)
    norm(plain).backward(grad.contiguous())
    torch.testing.assert_close(tokens.grad, to_tokens(plain.grad))
