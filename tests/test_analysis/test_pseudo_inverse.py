import pytest
import torch

from mmlinattn.analysis import (
    newton_cutoff,
    newton_residuals,
    normalize_by_degree,
    pinv_residual,
    spectral_norm,
)
from mmlinattn.functional import gaussian_kernel, newton_alpha, newton_pinv

pytestmark = pytest.mark.modern


def landmark_matrix(*shape):
    return gaussian_kernel(torch.randn(shape, dtype=torch.float64))


def steps(a, alpha, num_iters):
    """The iteration as printed."""
    inverse = alpha * a
    yield inverse
    for _ in range(num_iters):
        inverse = 2 * inverse - inverse @ a @ inverse
        yield inverse


def test_residuals_are_those_of_the_steps():
    a = landmark_matrix(2, 3, 7, 5)
    alpha = newton_alpha(a)
    expected = torch.stack([pinv_residual(a, x) for x in steps(a, alpha, 8)], -1)
    found = newton_residuals(torch.linalg.eigvalsh(a), alpha.squeeze(-1), 8)
    torch.testing.assert_close(found, expected)
    assert (found[..., 0] < 1).all() and (found.diff() < 0).all()


@pytest.mark.parametrize('num_iters', (1, 5, 20))
def test_cutoff_inverts_one_half(num_iters):
    alpha = torch.tensor([[[0.3]], [[0.01]]], dtype=torch.float64)
    cutoff = newton_cutoff(alpha, num_iters)
    for a, step, inverse in zip(
        cutoff, alpha, newton_pinv(cutoff, num_iters, alpha=alpha, solver='newton')
    ):
        torch.testing.assert_close(a * inverse, torch.full((1, 1), 0.5).double())
        assert step.shape == (1, 1)
    if num_iters == 20:  # 2^(-T/2) sqrt(ln 2 / alpha)
        torch.testing.assert_close(
            cutoff, 2.0**-10 * (0.6931471805599453 / alpha).sqrt(), rtol=1e-6, atol=0
        )


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
