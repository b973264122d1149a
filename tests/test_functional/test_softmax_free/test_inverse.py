"""Legend: B batch, m landmarks, k columns of a right-hand side."""

from itertools import product

import pytest
import torch
from equations import paper_pinv, relative_error
from torch import nn

from mmlinattn.functional import gaussian_kernel, newton_alpha, newton_pinv
from mmlinattn.functional.softmax_free.inverse import cholesky

SIZES = (1, 7, 49)
SOLVERS = ('newton', 'polynomial', 'spectral')


def one_norm(a):
    return torch.linalg.matrix_norm(a, ord=1)


def paper_alpha(a, beta=0.5, max_halvings=10):
    """The definition, for one matrix (m, m)."""
    eye = torch.eye(len(a), dtype=a.dtype)
    for n in range(max_halvings + 1):
        alpha = 2 * beta**n / one_norm(a) ** 2
        if one_norm(eye - alpha * a @ a) <= 1.01:
            break
    return alpha


def well_conditioned(batch, m):
    """Landmarks far from each other."""
    return 1.5 * torch.randn(batch, m, 16, dtype=torch.float64)


def smooth(batch, m):
    """Landmarks along a slow curve, as on a photograph: cond(A) is huge."""
    t = torch.linspace(0, 1, m, dtype=torch.float64)[:, None]
    phase = torch.rand(batch, 1, 16, dtype=torch.float64)
    return torch.sin(2 * t + 6 * phase)


LANDMARKS = pytest.mark.parametrize('landmarks', (well_conditioned, smooth))


@pytest.mark.parametrize('m', SIZES)
@LANDMARKS
def test_alpha_is_the_papers(landmarks, m):
    z = landmarks(3, m)
    a = gaussian_kernel(z)
    alpha = newton_alpha(a)
    assert alpha.shape == (3, 1, 1)
    expected = torch.stack([paper_alpha(matrix) for matrix in a])
    # only where alpha * lambda_max^2 may be 2, it is 1e-4 smaller
    near_two = expected * torch.stack([one_norm(b @ b) for b in a]) > 2 - 2e-4
    expected = expected * (1 - 5e-5 * near_two)
    torch.testing.assert_close(
        alpha.flatten(), expected, rtol=5.1e-5 if near_two.any() else 1e-12, atol=0
    )
    largest = torch.linalg.eigvalsh(a).amax(-1)
    assert (alpha.flatten() * largest.square() <= 2 - 1e-4).all()


@pytest.mark.parametrize('solver', SOLVERS)
@pytest.mark.parametrize('m', SIZES)
@LANDMARKS
def test_matches_the_iteration(landmarks, m, solver):
    z = landmarks(2, m)
    a = gaussian_kernel(z)
    x = torch.randn(2, m, 5, dtype=torch.float64)
    expected = paper_pinv(a, newton_alpha(a))
    result = newton_pinv(a, solver=solver)
    assert relative_error(result, expected) < 1e-10
    applied = newton_pinv(a, rhs=x, solver=solver)
    assert relative_error(applied, expected @ x) < 1e-10


@pytest.mark.parametrize(
    'solver, num_iters',
    (*product(('newton', 'spectral'), (1, 5, 30)), *product(('polynomial',), (18, 24))),
)
def test_num_iters(solver, num_iters):
    z = well_conditioned(2, 9)
    a = gaussian_kernel(z)
    alpha = torch.tensor([[[0.3]], [[0.01]]], dtype=torch.float64)
    result = newton_pinv(a, num_iters, alpha=alpha, solver=solver)
    expected = paper_pinv(a, alpha, num_iters)
    torch.testing.assert_close(result, expected, rtol=1e-10, atol=1e-10)


def photographic(height, width, dims=32, stride=8):
    """Landmarks of SOFT on a map whose spectrum falls as that of photographs."""
    size = height * stride, width * stride
    image = torch.zeros(1, 3, *size)
    for octave in range(9):
        noise = torch.randn(1, 3, *(-(-side // 2**octave) for side in size))
        image += 4**octave * nn.functional.interpolate(noise, size, mode='bilinear')
    features = nn.Conv2d(3, dims, 3, padding=1)(nn.functional.instance_norm(image))
    tokens = features.relu().flatten(2).mT
    q = nn.functional.layer_norm(tokens, (dims,)) / dims**0.25
    sampler = nn.Conv2d(dims, dims, stride, stride, bias=False)
    landmarks = sampler(q.mT.unflatten(-1, size)).flatten(2).mT
    z = nn.functional.gelu(nn.functional.layer_norm(landmarks, (dims,)))
    return z.detach().double()


@pytest.mark.parametrize('device', ('cpu', pytest.param('cuda', marks=pytest.mark.gpu)))
@pytest.mark.parametrize('solver', ('auto', *SOLVERS))
def test_float32_on_a_photograph(solver, device):
    if device == 'cuda' and not torch.cuda.is_available():
        pytest.skip('no GPU')
    z = photographic(21, 25).to(device)
    a = gaussian_kernel(z)
    assert torch.linalg.cond(a) > 1e6  # as on photographs
    x = a @ torch.randn(1, 525, 5, dtype=torch.float64, device=device)
    expected = paper_pinv(a, newton_alpha(a)) @ x
    result = newton_pinv(a.float(), rhs=x.float(), solver=solver)
    assert relative_error(result.double(), expected) < 1e-4


EXACT = {
    'identity': torch.eye(7),
    'one-landmark': torch.ones(1, 1),
    'equal-landmarks': torch.ones(7, 7),
    'two-landmarks': torch.tensor([[1, 0.5], [0.5, 1]]),
    'two-far-landmarks': torch.tensor([[1, 1e-9], [1e-9, 1]]),
    'two-colors': torch.block_diag(*2 * [torch.ones(3, 3)]),
}


@pytest.mark.parametrize('dtype', (torch.float32, torch.float64))
@pytest.mark.parametrize('solver', ('auto', *SOLVERS))
@pytest.mark.parametrize('name', EXACT)
def test_where_the_literal_iteration_stands_still(name, solver, dtype):
    a = EXACT[name].to(dtype)
    result = newton_pinv(a, solver=solver)
    expected = torch.linalg.pinv(a)
    # the operator multiplies rounding errors in A's null space by 2^20 alpha
    tolerance = 5e-3 if dtype == torch.float32 else 1e-10
    assert relative_error(result, expected) < tolerance


def test_wrong_input():
    with pytest.raises(ValueError, match="solver.*'cholesky'"):
        newton_pinv(torch.eye(3), solver='cholesky')
    with pytest.raises(ValueError, match=r"'polynomial'.*18\.\.\.24.*15"):
        newton_pinv(torch.eye(3), 15, solver='polynomial')


def test_cholesky_of_other_matrices():
    """NaN leads to NaN, as on a GPU, and to no error; a negative matrix to one."""
    good, nan = torch.eye(3), torch.full((3, 3), torch.nan)
    lower = cholesky(torch.stack((4 * good, nan)))
    torch.testing.assert_close(lower[0], 2 * good)
    assert lower[1].isnan().all()
    with pytest.raises(torch.linalg.LinAlgError):
        cholesky(torch.stack((-good, nan)))
