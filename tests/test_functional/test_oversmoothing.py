"""Legend: B batch, h heads, N tokens, d head dim, C channels."""

import pytest
import torch
from torch.autograd import gradcheck

from mmlinattn.functional import attn_scale, dc_component, feat_scale

pytestmark = pytest.mark.modern


@pytest.mark.parametrize('n', (1, 7, 63))
def test_attn_scale_matches_the_matrix_form(n):
    attn = torch.randn(2, 3, n, n, dtype=torch.float64).softmax(-1)
    v = torch.randn(2, 3, n, 5, dtype=torch.float64)
    omega = torch.tensor([-0.5, 0.0, 2.0], dtype=torch.float64)
    low = torch.full((n, n), 1 / n, dtype=torch.float64)
    scaled = low + (1 + omega[:, None, None]) * (attn - low)
    torch.testing.assert_close(attn_scale(attn @ v, v, omega), scaled @ v)


def test_attn_scale_is_the_identity_at_zero():
    out, v = torch.randn(2, 3, 7, 5), torch.randn(2, 3, 7, 5)
    assert attn_scale(out, v, torch.zeros(3)).equal(out)


def low_pass(x):
    """Keeps frequency 0 of the Fourier transform over tokens."""
    spectrum = torch.fft.fft(x, dim=1)
    spectrum[:, 1:] = 0
    return torch.fft.ifft(spectrum, dim=1).real


@pytest.mark.parametrize('n', (1, 7, 64))
def test_feat_scale_matches_the_frequency_form(n):
    x = torch.randn(2, n, 5, dtype=torch.float64)
    dc_scale, hc_scale = torch.randn(2, 5, dtype=torch.float64)
    low = low_pass(x)
    torch.testing.assert_close(dc_component(x).expand_as(x), low)
    torch.testing.assert_close(
        feat_scale(x, dc_scale, hc_scale),
        (1 + dc_scale) * low + (1 + hc_scale) * (x - low),
    )


def test_feat_scale_is_the_identity_at_zero():
    x = torch.randn(2, 7, 5)
    assert feat_scale(x, torch.zeros(5), torch.zeros(5)).equal(x)


@pytest.mark.parametrize(
    'function, shapes',
    (
        (attn_scale, ((2, 3, 7, 4), (2, 3, 7, 4), (3,))),
        (feat_scale, ((2, 7, 4), (4,), (4,))),
    ),
    ids=('attn_scale', 'feat_scale'),
)
def test_gradcheck(function, shapes):
    inputs = [
        torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes
    ]
    assert gradcheck(function, inputs)
