import pytest
import torch

from mmlinattn.analysis import normalize_by_degree, pinv_residual, spectral_norm
from mmlinattn.functional import gaussian_kernel

pytestmark = pytest.mark.modern


def landmark_matrix(*shape):
    return gaussian_kernel(torch.randn(shape, dtype=torch.float64))


def test_norms():
    a = torch.diag(torch.tensor([3.0, -4.0, 0.5]))
    assert spectral_norm(a).item() == pytest.approx(4)
    assert spectral_norm(a, symmetric=True).item() == pytest.approx(4)
    a = torch.randn(2, 5, 5, dtype=torch.float64)
    a = a + a.mT
    torch.testing.assert_close(spectral_norm(a, symmetric=True), spectral_norm(a))
    assert spectral_norm(torch.ones(2, 3, 5)).tolist() == pytest.approx([15**0.5] * 2)


def test_normalized_inverse():
    """Its norm is that of the inverse over the row sum where row sums are equal, and
    its definition elsewhere."""
    a = torch.tensor([[1.0, 0.5], [0.5, 1.0]], dtype=torch.float64)
    inverse = torch.linalg.inv(a)
    ratio = spectral_norm(inverse) / spectral_norm(normalize_by_degree(inverse, a))
    assert ratio.item() == pytest.approx(1.5)
    a = landmark_matrix(2, 6, 4)
    inverse = torch.linalg.inv(a)
    scale = torch.diag_embed(a.sum(-1) ** -0.5)
    torch.testing.assert_close(normalize_by_degree(inverse, a), scale @ inverse @ scale)


def test_residual_of_a_pseudo_inverse():
    a = torch.diag(torch.tensor([2.0, 0.0]))
    assert pinv_residual(a, torch.diag(torch.tensor([0.5, 7.0]))).item() == 0
    assert pinv_residual(a, torch.diag(torch.tensor([0.25, 0.0]))).item() == 0.5
