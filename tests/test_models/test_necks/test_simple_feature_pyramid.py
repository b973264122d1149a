import pytest
import torch
from torch import nn
from torch.nn.functional import conv2d, conv_transpose2d, gelu, max_pool2d

from mmlinattn.models import SimpleFeaturePyramid


def norm(x, layer):
    """LayerNorm over channels, written out."""
    mean = x.mean(1, keepdim=True)
    var = x.var(1, unbiased=False, keepdim=True)
    x = (x - mean) / (var + 1e-6).sqrt()
    return x * layer.weight[:, None, None] + layer.bias[:, None, None]


def smooth(x, layers):
    """The 1 x 1 and the 3 x 3 convolution that end every level."""
    x = norm(conv2d(x, layers[0].weight), layers[1])
    return norm(conv2d(x, layers[2].weight, padding=1), layers[3])


def up(x, layer):
    return conv_transpose2d(x, layer.weight, layer.bias, stride=2)


def expected_levels(neck, x):
    """The four levels of the default scales, and a fifth."""
    four, two, one, half = neck.levels
    outs = [
        smooth(up(gelu(norm(up(x, four[0]), four[1])), four[3]), four[4:]),
        smooth(up(x, two[0]), two[1:]),
        smooth(x, one),
        smooth(max_pool2d(x, 2), half[1:]),
    ]
    return outs + [outs[-1][:, :, ::2, ::2]]


def build(**options):
    """A neck whose norms and biases matter."""
    neck = SimpleFeaturePyramid(**options).double()
    neck.init_weights()
    for param in neck.parameters():
        if param.dim() == 1:
            nn.init.uniform_(param, 0.5, 1.5)
    return neck


def test_equals_the_equations():
    neck = build(in_channels=8, out_channels=6, num_outs=5)
    x = torch.randn(2, 8, 6, 4, dtype=torch.double)
    outs = neck([x])
    assert isinstance(outs, tuple)
    torch.testing.assert_close(
        list(outs), expected_levels(neck, x), rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize(
    'options, message',
    [
        (dict(in_channels=8, scales=(4, 3)), 'scales must be .* got 3'),
        (dict(in_channels=8, num_outs=3), 'num_outs must be at least .* 4, got 3'),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        SimpleFeaturePyramid(**options)
