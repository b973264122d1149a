import pytest
import torch
from torch.nn.functional import silu

from mmlinattn.models import ConvPoolingNeck

pytestmark = pytest.mark.modern


def test_matches_the_layers():
    neck = ConvPoolingNeck(8, 12).eval()
    neck.init_weights()
    conv, norm, _ = neck.layer
    assert conv.weight.shape == (12, 8, 1, 1) and not conv.bias.any()
    for parameter in neck.parameters():
        torch.nn.init.normal_(parameter)
    maps = torch.randn(2, 4, 9, 6), torch.randn(2, 8, 5, 3)
    tokens = maps[-1].flatten(2).mT @ conv.weight.flatten(1).mT + conv.bias
    tokens = tokens / (1 + norm.eps) ** 0.5 * norm.weight + norm.bias
    (out,) = neck(maps)
    torch.testing.assert_close(out, silu(tokens).mean(1))


def test_without_a_convolution():
    """The BatchNorm and the mean alone."""
    neck = ConvPoolingNeck(8, None).train()
    x = torch.randn(2, 8, 5, 3)
    (out,) = neck((x,))
    assert [*neck.state_dict()][:2] == ['layer.1.weight', 'layer.1.bias']
    assert neck.out_channels == 8 and out.shape == (2, 8)
    torch.testing.assert_close(out.mean(0), torch.zeros(8), rtol=0, atol=1e-6)
