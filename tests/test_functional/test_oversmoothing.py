"""Legend: B batch, h heads, N tokens, d head dim, C channels."""

import pytest
import torch

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
