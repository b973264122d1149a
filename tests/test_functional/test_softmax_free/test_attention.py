"""Legend: B batch, h heads, N tokens, m landmarks, d head dim."""

import pytest
import torch
from torch.autograd import gradcheck
from torch.utils._python_dispatch import TorchDispatchMode

from mmlinattn.functional import newton_alpha, precision, softmax_free_attention
from mmlinattn.functional.precision import full_float32

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
        dict(solver='lanczos'),
        dict(normalize=False, ridge=0.01),
        dict(solver='cholesky', ridge=0.01),
    ),
    ids=('newton', 'polynomial', 'spectral', 'lanczos', 'soft', 'cholesky'),
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


@pytest.mark.parametrize('keep_kernel', (True, False), ids=('kept', 'streamed'))
@pytest.mark.parametrize('solver', ('auto', 'newton', 'polynomial', 'spectral'))
@pytest.mark.parametrize(
    'normalize, ridge',
    ((True, 0.0), (False, 0.01), (True, 0.1)),
    ids=('softpp', 'soft', 'softpp-ridge'),
)
@pytest.mark.parametrize('shape', SHAPES, ids=IDS)
def test_matches_the_papers(shape, normalize, ridge, solver, keep_kernel):
    b, h, n, m, d = shape
    q, landmarks, v = tokens(b, h, n, d), tokens(b, h, m, d), tokens(b, h, n, d)
    result = softmax_free_attention(
        q,
        landmarks,
        v,
        normalize=normalize,
        ridge=ridge,
        solver=solver,
        keep_kernel=keep_kernel,
    )
    expected = paper_attention(q, landmarks, v, normalize, ridge)
    assert result.shape == (b, h, n, d)
    assert relative_error(result, expected) < 1e-8


@pytest.mark.parametrize('solver', ('newton', 'polynomial', 'spectral'))
def test_float32_on_smooth_tokens(solver):
    """As on a photograph: landmarks that are almost equal."""
    t = torch.linspace(0, 3, 130, dtype=torch.float64)[:, None]
    q = torch.sin(t + torch.arange(8)).expand(1, 2, -1, -1)
    landmarks, v = q[..., ::2, :], tokens(1, 2, 130, 8)
    inputs = (q.float(), landmarks.float(), v.float())
    result = softmax_free_attention(*inputs, solver=solver)
    expected = paper_attention(q, landmarks, v, normalize=True)
    assert relative_error(result.double(), expected) < 1e-3


def test_tokens_as_landmarks_give_the_full_kernel():
    """Nystroem's approximation is exact when all tokens are landmarks."""
    q, v = 2 * tokens(1, 2, 7, 8), tokens(1, 2, 7, 8)
    result = softmax_free_attention(q, q, v, normalize=False)
    torch.testing.assert_close(result, paper_kernel(q, q) @ v)


def on_a_line(q):
    """All tokens multiples of one: a kernel of low numerical rank."""
    return q[..., :1] * q[..., :1, :]


# Of tokens (B, h, N, d): with their first 12 as landmarks A is (nearly) singular.
DEGENERATE = {
    'constant-image': lambda q: q[..., :1, :].expand_as(q),
    'black-image': torch.zeros_like,
    'duplicated-landmarks': lambda q: q[..., :1, :].where(
        torch.arange(q.size(-2))[:, None] % 2 == 0, q
    ),
    'on-a-line': on_a_line,
    'nearly-equal': lambda q: 1 + 1e-4 * q,
    'far-apart': lambda q: 1e4 * q,
}


@OPTIONS
@pytest.mark.parametrize('keep_kernel', (True, False), ids=('kept', 'streamed'))
@pytest.mark.parametrize('name', DEGENERATE)
def test_finite_on_degenerate_tokens(name, keep_kernel, options):
    q = DEGENERATE[name](tokens(2, 2, 50, 8, dtype=torch.float32)).clone()
    inputs = q, q[:, :, :12].clone(), tokens(2, 2, 50, 8, dtype=torch.float32)
    inputs = [x.requires_grad_() for x in inputs]
    out = softmax_free_attention(*inputs, keep_kernel=keep_kernel, **options)
    assert out.isfinite().all()
    out.square().sum().backward()
    assert all(x.grad.isfinite().all() for x in inputs)


@pytest.mark.parametrize('solver', ('newton', 'polynomial', 'spectral'))
def test_constant_image(solver):
    """All kernels are 1: every token gets the sum of values over m."""
    q, v = torch.ones(1, 2, 50, 8), tokens(1, 2, 50, 8, dtype=torch.float32)
    out = softmax_free_attention(q, q[:, :, :12], v, solver=solver)
    expected = (v.sum(-2, keepdim=True) / 12).expand_as(out)
    torch.testing.assert_close(out, expected, rtol=1e-3, atol=1e-3)


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


@pytest.mark.parametrize('keep_kernel', (True, False), ids=('kept', 'streamed'))
@OPTIONS
def test_gradcheck(options, keep_kernel):
    q, v = 2 * tokens(1, 2, 7, 3), tokens(1, 2, 7, 3)
    landmarks = 2 * tokens(1, 2, 4, 3)
    assert torch.linalg.cond(paper_kernel(landmarks, landmarks)).max() <= 10
    inputs = [x.requires_grad_() for x in (q, landmarks, v)]
    assert gradcheck(
        lambda *args: softmax_free_attention(*args, keep_kernel=keep_kernel, **options),
        inputs,
    )


@pytest.mark.parametrize('normalize', (True, False))
def test_an_image_does_not_see_its_neighbors(normalize):
    q, v = tokens(3, 2, 63, 5), tokens(3, 2, 63, 5)
    q[1] = q[1, :, :1]  # equal landmarks
    q[2] *= 5
    landmarks = q[:, :, ::7]
    together = softmax_free_attention(q, landmarks, v, normalize)
    for i in range(3):
        one = slice(i, i + 1)
        alone = softmax_free_attention(q[one], landmarks[one], v[one], normalize)
        torch.testing.assert_close(together[one], alone, rtol=1e-12, atol=1e-12)


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


@pytest.mark.parametrize('keep_kernel', (True, False), ids=('kept', 'streamed'))
@pytest.mark.parametrize('dtype', (torch.float16, torch.bfloat16))
def test_half_inputs_are_computed_in_float32(dtype, keep_kernel):
    inputs = [tokens(2, 2, n, 8, dtype=dtype).requires_grad_() for n in (63, 9, 63)]
    result = softmax_free_attention(*inputs, keep_kernel=keep_kernel)
    grad = torch.randn_like(result)
    results = (result, *torch.autograd.grad(result, inputs, grad))
    inputs = [x.detach().float().requires_grad_() for x in inputs]
    expected = softmax_free_attention(*inputs, keep_kernel=keep_kernel)
    expected = (expected, *torch.autograd.grad(expected, inputs, grad.float()))
    for x, right in zip(results, expected):
        assert x.dtype == dtype
        assert x.equal(right.to(dtype))


class Precisions(TorchDispatchMode):
    """What matrix products of float32 are allowed to be rounded to."""

    def __init__(self):
        self.found = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.bmm):
            self.found.add(precision._precision())
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize('solver', ('newton', 'spectral'))
@pytest.mark.parametrize('keep_kernel', (True, False), ids=('kept', 'streamed'))
def test_tf32_does_not_reach_it(keep_kernel, solver):
    """Neither forward nor backward, and the setting stays the caller's."""
    inputs = [tokens(1, 2, n, 8, dtype=torch.float32) for n in (63, 9, 63)]
    inputs = [x.requires_grad_() for x in inputs]
    before = precision._precision()
    torch.set_float32_matmul_precision('high')
    try:
        allowed = precision._precision()
        with Precisions() as seen:
            out = softmax_free_attention(
                *inputs, solver=solver, keep_kernel=keep_kernel
            )
            out.square().sum().backward()
        assert precision._precision() == allowed
        with pytest.raises(ValueError, match='a cat'), full_float32(out):
            raise ValueError('a cat')
        assert precision._precision() == allowed
    finally:
        torch.set_float32_matmul_precision('highest')
        precision._set_precision(before)
    assert seen.found == {precision._FULL}
    assert allowed != precision._FULL


Q = torch.ones(2, 3, 8, 5)


@pytest.mark.parametrize(
    'inputs, options, message',
    (
        ((Q[0], Q[0], Q[0]), {}, r'\(B, h, N, d\).*\(3, 8, 5\)'),
        ((Q, Q[..., :4], Q), {}, r'landmarks.*\(2, 3, 8, 4\)'),
        ((Q, Q[:1], Q), {}, r'landmarks.*\(1, 3, 8, 5\)'),
        ((Q, Q, Q[:, :, 1:]), {}, r'v .*\(2, 3, 7, 5\)'),
        ((Q, Q[:, :, :0], Q), {}, 'm=0'),
        ((Q[:, :, :0], Q, Q[:, :, :0]), {}, 'N=0'),
        ((Q, Q, Q), dict(solver='lu'), "solver .*cholesky.*'lu'"),
        ((Q, Q, Q), dict(solver='cholesky'), 'positive ridge.*0'),
        ((Q, Q, Q), dict(ridge=-1.0), 'ridge.*-1'),
        ((Q, Q, Q), dict(ridge=float('nan')), 'ridge.*nan'),
        ((Q, Q, Q), dict(ridge=float('inf')), 'ridge.*inf'),
        ((Q, Q, Q), dict(num_iters=1024), 'num_iters.*100.*1024'),
        ((Q, Q, Q), dict(num_iters=0), 'num_iters.*0'),
        ((Q, Q, Q), dict(halves=3), 'halves.*1, 2 or None.*3'),
    ),
)
def test_wrong_input(inputs, options, message):
    with pytest.raises(ValueError, match=message):
        softmax_free_attention(*inputs, **options)
