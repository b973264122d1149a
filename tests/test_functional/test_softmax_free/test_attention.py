"""Legend: B batch, h heads, N tokens, m landmarks, d head dim."""

import pytest
import torch
from torch.autograd import gradcheck
from torch.utils._python_dispatch import TorchDispatchMode

from mmlinattn.functional import newton_alpha, precision, softmax_free_attention
from mmlinattn.functional.softmax_free import attention, kernel

pytestmark = pytest.mark.modern

# (B, h, N, m, d)
SHAPES = (
    (2, 3, 63, 9, 5),
    (1, 1, 1, 1, 1),
    (3, 2, 50, 2, 8),
    (1, 2, 130, 49, 7),
    (2, 1, 257, 101, 3),
)
IDS = [f'B{b}-h{h}-N{n}-m{m}-d{d}' for b, h, n, m, d in SHAPES]
OPTIONS = pytest.mark.parametrize(
    'options',
    (
        dict(solver='newton'),
        dict(solver='polynomial'),
        dict(solver='spectral'),
        dict(normalize=False, ridge=0.01),
        dict(solver='cholesky', ridge=0.01),
    ),
    ids=('newton', 'polynomial', 'spectral', 'soft', 'cholesky'),
)


def tokens(*shape, dtype=torch.float64):
    return torch.randn(shape, dtype=dtype)


def paper_kernel(q, k):
    """exp(-|q_i - k_j|^2 / 2), pair by pair."""
    return (-(q[..., :, None, :] - k[..., None, :, :]).square().sum(-1) / 2).exp()


def paper_attention(q, landmarks, v, normalize, ridge=0.0):
    """The papers' equations on dense matrices."""
    p = paper_kernel(landmarks, q)
    a = paper_kernel(landmarks, landmarks)
    eye = torch.eye(a.size(-1), dtype=a.dtype)
    degree = a.sum(-1)
    if normalize:
        alpha = newton_alpha(a + ridge * eye)
        scale = torch.diag_embed(degree**-0.5)
    else:
        alpha = 1.8 / degree.amax(-1)[..., None, None] ** 2
        scale = eye
    a = a + ridge * eye
    inverse = alpha * a
    for _ in range(20):
        inverse = 2 * inverse - inverse @ a @ inverse
    return p.mT @ scale @ inverse @ scale @ p @ v


def relative_error(result, expected):
    return (result - expected).norm() / expected.norm()


@pytest.mark.parametrize('solver', ('auto', 'newton', 'polynomial', 'spectral'))
@pytest.mark.parametrize(
    'normalize, ridge',
    ((True, 0.0), (False, 0.01), (True, 0.1)),
    ids=('softpp', 'soft', 'softpp-ridge'),
)
@pytest.mark.parametrize('shape', SHAPES, ids=IDS)
def test_matches_the_papers(shape, normalize, ridge, solver):
    b, h, n, m, d = shape
    q, landmarks, v = tokens(b, h, n, d), tokens(b, h, m, d), tokens(b, h, n, d)
    result = softmax_free_attention(
        q, landmarks, v, normalize=normalize, ridge=ridge, solver=solver
    )
    expected = paper_attention(q, landmarks, v, normalize, ridge)
    assert result.shape == (b, h, n, d)
    assert relative_error(result, expected) < 1e-8


# Of tokens (B, h, N, d): with their first 12 as landmarks A is (nearly) singular.
DEGENERATE = {
    'constant-image': lambda q: q[..., :1, :].expand_as(q),
    'black-image': torch.zeros_like,
    'duplicated-landmarks': lambda q: q[..., :1, :].where(
        torch.arange(q.size(-2))[:, None] % 2 == 0, q
    ),
    'on-a-line': lambda q: q[..., :1] * q[..., :1, :],  # of low numerical rank
    'nearly-equal': lambda q: 1 + 1e-4 * q,
    'far-apart': lambda q: 1e4 * q,
}


@OPTIONS
@pytest.mark.parametrize('name', DEGENERATE)
def test_finite_on_degenerate_tokens(name, options):
    q = DEGENERATE[name](tokens(2, 2, 50, 8, dtype=torch.float32)).clone()
    inputs = q, q[:, :, :12].clone(), tokens(2, 2, 50, 8, dtype=torch.float32)
    inputs = [x.requires_grad_() for x in inputs]
    out = softmax_free_attention(*inputs, **options)
    assert out.isfinite().all()
    out.square().sum().backward()
    assert all(x.grad.isfinite().all() for x in inputs)


@pytest.mark.parametrize('normalize', (True, False))
@pytest.mark.parametrize('ridge', (1e-3, 0.01, 0.5))
def test_cholesky_is_the_ridge_inverse(ridge, normalize):
    q, landmarks, v = tokens(2, 3, 63, 5), tokens(2, 3, 9, 5), tokens(2, 3, 63, 5)
    result = softmax_free_attention(
        q, landmarks, v, normalize=normalize, ridge=ridge, solver='cholesky'
    )
    p, a = paper_kernel(landmarks, q), paper_kernel(landmarks, landmarks)
    scale = torch.diag_embed(a.sum(-1) ** -0.5) if normalize else torch.eye(9).double()
    inverse = torch.linalg.inv(a + ridge * torch.eye(9))
    torch.testing.assert_close(result, p.mT @ scale @ inverse @ scale @ p @ v)


@pytest.mark.parametrize('ridge', (0.01, 0.1, 1.0, 10.0))
@pytest.mark.parametrize('m', (1, 9))
def test_soft_converges_at_any_ridge(m, ridge):
    """Its step size was made for a ridge of 0.01."""
    q, landmarks, v = tokens(1, 1, 20, 5), tokens(1, 1, m, 5), tokens(1, 1, 20, 5)
    result, expected = (
        softmax_free_attention(
            q, landmarks, v, normalize=False, ridge=ridge, solver=solver
        )
        for solver in ('newton', 'cholesky')
    )
    torch.testing.assert_close(result, expected)


@OPTIONS
def test_gradcheck(options):
    q, v = 2 * tokens(1, 2, 7, 3), tokens(1, 2, 7, 3)
    landmarks = 2 * tokens(1, 2, 4, 3)
    assert torch.linalg.cond(paper_kernel(landmarks, landmarks)).max() <= 10
    inputs = [x.requires_grad_() for x in (q, landmarks, v)]
    assert gradcheck(lambda *args: softmax_free_attention(*args, **options), inputs)


@pytest.mark.parametrize('solver', ('newton', 'spectral', 'cholesky'))
def test_float32_inside_autocast(solver):
    inputs = [
        tokens(2, 2, n, 8, dtype=torch.float32).requires_grad_() for n in (63, 9, 63)
    ]

    def run(autocast):
        with torch.autocast('cpu', torch.bfloat16, enabled=autocast):
            out = softmax_free_attention(*inputs, ridge=0.01, solver=solver)
        return (out, *torch.autograd.grad(out.square().sum(), inputs))

    for result, expected in zip(run(True), run(False)):
        assert result.dtype == torch.float32
        assert result.equal(expected)


@pytest.mark.parametrize('dtype', (torch.float16, torch.bfloat16))
@pytest.mark.parametrize('size', (0.4, 1e4))
def test_products_of_halves(size, dtype, monkeypatch):
    """A GPU computes them without gradients: at most twice the error of rounding
    inputs and output; extreme images are finite."""
    if dtype == torch.float16 and torch.__version__.startswith('2.1.'):
        pytest.skip('no float16 on CPUs')
    inputs = [tokens(2, 2, n, 32) for n in (500, 49, 500)]
    inputs[0], inputs[1] = size * inputs[0], size * inputs[1]
    rounded = [x.to(dtype) for x in inputs]
    monkeypatch.setattr(attention, 'product_dtype', lambda *args: dtype)
    monkeypatch.setattr(kernel, '_SMALL', 0)
    result = softmax_free_attention(*rounded)
    assert result.dtype == dtype
    assert result.isfinite().all()
    if size < 1:
        exact = paper_attention(*inputs, normalize=True)
        cost = paper_attention(*(x.double() for x in rounded), normalize=True)
        cost = relative_error(cost.to(dtype).double(), exact)
        assert relative_error(result.double(), exact) < 2 * cost


class TF32(TorchDispatchMode):
    """Rounds the factors of float32's products like tensor cores."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.bmm):
            args = [self.rounded(x) for x in args]
        return func(*args, **(kwargs or {}))

    @staticmethod
    def rounded(x):
        if x.dtype != torch.float32:
            return x
        bits = x.contiguous().view(torch.int32)
        return ((bits + 2**12) & -(2**13)).view(torch.float32)


@pytest.mark.parametrize('solver', ('newton', 'polynomial'))
def test_tf32_costs_no_digits(solver, monkeypatch):
    """Neither forward nor backward, and no setting of the process is changed."""
    shapes = (130, 25, 130)
    inputs = [(0.4 * tokens(1, 2, n, 8)).requires_grad_() for n in shapes]
    grad = tokens(1, 2, 130, 8)

    def run(inputs):
        out = softmax_free_attention(*inputs, solver=solver)
        return (out, *torch.autograd.grad(out, inputs, grad.to(out.dtype)))

    exact = run(inputs)
    singles = [x.detach().float().requires_grad_() for x in inputs]
    errors = {}
    for permitted in (None, 'tf32'):
        monkeypatch.setattr(precision, '_permitted', {'cpu': permitted}.get)
        with TF32():
            errors[permitted] = max(
                relative_error(x.double(), right)
                for x, right in zip(run(singles), exact)
            )
    assert errors['tf32'] < 1e-4 < 1e-3 < errors[None]


def test_what_products_are_rounded_to():
    x = torch.ones(1)
    assert precision.rounded_to(x) is None
    torch.set_float32_matmul_precision('medium')
    try:
        assert precision.rounded_to(x) == 'bf16'
        assert precision.rounded_to(x.double()) is None
        factors = torch.randn(7, 40, 50), torch.randn(7, 50, 3)
        exact = factors[0].double() @ factors[1].double()
        assert precision.full_product(*factors).equal(exact.float())
    finally:
        torch.set_float32_matmul_precision('highest')
