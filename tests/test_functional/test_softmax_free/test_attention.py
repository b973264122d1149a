"""Legend: B batch, h heads, N tokens, m landmarks, d head dim."""

from contextlib import nullcontext
from itertools import product

import pytest
import torch
from equations import paper_kernel, paper_pinv, relative_error, tokens
from torch.autograd import gradcheck
from torch.utils._python_dispatch import TorchDispatchMode

from mmlinattn.functional import newton_alpha, precision, softmax_free_attention
from mmlinattn.functional.softmax_free import attention, inverse, kernel

# (B, h, N, m, d)
SHAPES = ((2, 3, 63, 9, 5), (1, 1, 1, 1, 1), (1, 2, 130, 49, 7))
ROWS = dict(normalize='rows', ridge=0.001, relative_ridge=True, solver='cholesky')
OPTIONS = pytest.mark.parametrize(
    'options',
    (
        dict(solver='newton'),
        dict(solver='polynomial'),
        dict(solver='spectral'),
        dict(normalize=False, ridge=0.01),
        dict(solver='cholesky', ridge=0.01),
        dict(ROWS, solver='newton'),
        ROWS,
    ),
    ids=('newton', 'polynomial', 'spectral', 'soft', 'cholesky', 'rows-newton', 'rows'),
)


def paper_attention(q, landmarks, v, normalize, ridge=0.0, exact=False):
    """The papers' equations on dense matrices, with Newton's steps or the inverse."""
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
    inverse = torch.linalg.inv(a) if exact else paper_pinv(a, alpha)
    return p.mT @ scale @ inverse @ scale @ p @ v


def rows_attention(q, landmarks, v, ridge):
    """K V / K 1 on dense matrices, and K 1 over its mean."""
    p = paper_kernel(landmarks, q)
    m = p.size(-2)
    a = paper_kernel(landmarks, landmarks) + ridge * m * torch.eye(m, dtype=p.dtype)
    kernel = p.mT @ torch.linalg.inv(a) @ p
    sums = kernel.sum(-1, keepdim=True)
    shares = sums / sums.mean(-2, keepdim=True)
    return kernel @ v / sums.where(shares > 0.01, sums / shares / 100), shares


SOLVERS = ('newton', 'polynomial', 'spectral')


@pytest.mark.parametrize(
    'solver, normalize, ridge',
    (
        *((solver, True, 0.0) for solver in SOLVERS),
        *product((*SOLVERS, 'cholesky'), (True, False), (0.01,)),
    ),
)
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_matches_the_papers(shape, normalize, ridge, solver):
    b, h, n, m, d = shape
    q, landmarks, v = tokens(b, h, n, d), tokens(b, h, m, d), tokens(b, h, n, d)
    result = softmax_free_attention(
        q, landmarks, v, normalize=normalize, ridge=ridge, solver=solver
    )
    exact = solver == 'cholesky'
    expected = paper_attention(q, landmarks, v, normalize, ridge, exact)
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


@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_rows(shape):
    b, h, n, m, d = shape
    q, landmarks, v = tokens(b, h, n, d), tokens(b, h, m, d), tokens(b, h, n, d)
    result = softmax_free_attention(q, landmarks, v, **ROWS)
    expected, _ = rows_attention(q, landmarks, v, 0.001)
    assert relative_error(result, expected) < 1e-8
    single = softmax_free_attention(q.float(), landmarks.float(), v.float(), **ROWS)
    assert relative_error(single.double(), expected) < 1e-4
    halves = [x.bfloat16() for x in (q, landmarks, v)]
    expected, _ = rows_attention(*(x.double() for x in halves), 0.001)
    half = softmax_free_attention(*halves, **ROWS)
    assert half.dtype == torch.bfloat16
    assert relative_error(half.double(), expected) < 4e-3  # its rounding


def test_a_row_sum_that_is_not_positive():
    """It is that of a token beyond one landmark, when all others are beyond the other:
    its row fades out, and does not grow."""
    q = torch.tensor([-1.5] + 200 * [2.0], dtype=torch.float64).view(1, 1, 201, 1)
    landmarks = torch.tensor([-1.0, 1.0], dtype=torch.float64).view(1, 1, 2, 1)
    expected, shares = rows_attention(q, landmarks, torch.ones_like(q), 0.001)
    assert shares.amin() < -0.01
    result = softmax_free_attention(q, landmarks, torch.ones_like(q), **ROWS)
    torch.testing.assert_close(result, expected)
    assert result.abs().amax() < 10
    torch.testing.assert_close(result[:, :, 1:], torch.ones_like(q)[:, :, 1:])


@pytest.mark.parametrize('normalize, factor', ((True, 7 / 63 * 9 / 4), (False, 7 / 63)))
def test_size_factor(normalize, factor):
    """(N_0 / N)(m / m_0) for SOFT++, N_0 / N for SOFT."""
    inputs = tokens(2, 1, 63, 5), tokens(2, 1, 9, 5), tokens(2, 1, 63, 5)
    printed, scaled, same = (
        softmax_free_attention(*inputs, normalize=normalize, trained_size=size)
        for size in (None, (7, 4), (63, 9))
    )
    torch.testing.assert_close(scaled, factor * printed)
    torch.testing.assert_close(same, printed)


@OPTIONS
def test_gradcheck(options):
    q, v = 2 * tokens(1, 2, 7, 3), tokens(1, 2, 7, 3)
    landmarks = 2 * tokens(1, 2, 4, 3)
    assert torch.linalg.cond(paper_kernel(landmarks, landmarks)).max() <= 10
    inputs = [x.requires_grad_() for x in (q, landmarks, v)]
    assert gradcheck(lambda *args: softmax_free_attention(*args, **options), inputs)


@pytest.mark.parametrize('normalize', (True, 'rows'))
@pytest.mark.parametrize('solver', ('newton', 'spectral', 'cholesky'))
def test_float32_inside_autocast(solver, normalize):
    inputs = [
        tokens(2, 2, n, 8, dtype=torch.float32).requires_grad_() for n in (63, 9, 63)
    ]

    def run(autocast):
        with torch.autocast('cpu', torch.bfloat16, enabled=autocast):
            out = softmax_free_attention(*inputs, normalize, ridge=0.01, solver=solver)
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
    """Rounds the factors of float32's products like tensor cores, where it is
    permitted."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        products = torch.ops.aten.mm, torch.ops.aten.bmm, torch.ops.aten.baddbmm
        if func.overloadpacket in products and precision.rounded_to(torch.ones(1)):
            args = [self.rounded(x) for x in args]
        return func(*args, **(kwargs or {}))

    @staticmethod
    def rounded(x):
        if x.dtype != torch.float32:
            return x
        bits = x.contiguous().view(torch.int32)
        return ((bits + 2**12) & -(2**13)).view(torch.float32)


@pytest.fixture
def rounding():
    """PyTorch may round the factors of products, here on a CPU."""
    # from torch 2.9 on, some CPUs do round with 'medium'
    setting = 'high' if hasattr(torch.backends, 'fp32_precision') else 'medium'
    torch.set_float32_matmul_precision(setting)
    yield setting
    torch.set_float32_matmul_precision('highest')


@pytest.mark.parametrize(
    'options',
    (dict(solver='newton'), dict(solver='polynomial'), ROWS),
    ids=('newton', 'polynomial', 'rows'),
)
def test_rounding_costs_no_digits(options, rounding, monkeypatch):
    """The setting of the process stays as it was."""
    shapes = (130, 25, 130)
    inputs = [(0.4 * tokens(1, 2, n, 8)).requires_grad_() for n in shapes]
    grad = tokens(1, 2, 130, 8)

    def run(inputs):
        out = softmax_free_attention(*inputs, **options)
        return (out, *torch.autograd.grad(out, inputs, grad.to(out.dtype)))

    def errors():
        with TF32():
            results = run(singles)
        return [relative_error(x.double(), y) for x, y in zip(results, exact)]

    exact = run(inputs)
    singles = [x.detach().float().requires_grad_() for x in inputs]
    largest = errors()
    assert largest[0] < 1e-4
    # the gradient of its products with P is one of matrices like all others
    assert max(largest) < (1e-2 if options is ROWS else 1e-4)
    assert torch.get_float32_matmul_precision() == rounding
    if options is not ROWS:  # its factorization is no product
        monkeypatch.setattr(inverse, 'full_precision', lambda x: nullcontext())
        assert max(errors()) > 1e-3
