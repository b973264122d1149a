"""Legend: B batch, h heads, M rows, N columns, d head dim, e channels of values."""

import pytest
import torch
from torch.autograd import gradcheck
from torch.utils._python_dispatch import TorchDispatchMode

from mmlinattn.functional import gaussian_kernel, gaussian_product
from mmlinattn.functional.softmax_free import streaming

pytestmark = pytest.mark.modern

# (B, h, M, N, d, e)
SHAPES = (
    (2, 3, 63, 9, 5, 5),
    (1, 1, 1, 1, 1, 1),
    (3, 2, 2, 50, 8, 3),
    (1, 2, 49, 130, 7, 7),
    (2, 1, 17, 17, 3, 4),
)
IDS = [f'B{b}-h{h}-M{m}-N{n}-d{d}-e{e}' for b, h, m, n, d, e in SHAPES]


@pytest.fixture(params=(1, 40, 2**19))
def block_entries(request, monkeypatch):
    """Blocks of a row each, of a few rows, and of the whole matrix."""
    monkeypatch.setattr(streaming, '_BLOCK_ENTRIES', request.param)


def paper_kernel(q, k):
    """exp(-|q_i - k_j|^2 / 2), pair by pair."""
    return (-(q[..., :, None, :] - k[..., None, :, :]).square().sum(-1) / 2).exp()


def tokens(*shape, dtype=torch.float64):
    return torch.randn(shape, dtype=dtype)


def inputs(shape, dtype=torch.float64):
    b, h, m, n, d, e = shape
    return (
        tokens(b, h, m, d, dtype=dtype),
        tokens(b, h, n, d, dtype=dtype),
        tokens(b, h, n, e, dtype=dtype),
    )


@pytest.mark.parametrize('shape', SHAPES, ids=IDS)
def test_gaussian_kernel(shape):
    q, k, _ = inputs(shape)
    torch.testing.assert_close(gaussian_kernel(q, k), paper_kernel(q, k))


@pytest.mark.parametrize('shape', SHAPES, ids=IDS)
def test_gradients_of_gaussian_kernel(shape):
    args = [x.requires_grad_() for x in inputs(shape)[:2]]
    kernel, expected = gaussian_kernel(*args), paper_kernel(*args)
    grad = torch.randn_like(expected)
    torch.testing.assert_close(
        torch.autograd.grad(kernel, args, grad),
        torch.autograd.grad(expected, args, grad),
    )
    q = args[0]  # as its own columns, like landmarks
    kernel, expected = gaussian_kernel(q), paper_kernel(q, q)
    grad = torch.randn_like(expected)
    torch.testing.assert_close(
        torch.autograd.grad(kernel, q, grad), torch.autograd.grad(expected, q, grad)
    )


def test_gaussian_kernel_stays_below_one():
    q = 1e3 * tokens(1, 2, 50, 8, dtype=torch.float32)
    for kernel in (gaussian_kernel(q), gaussian_kernel(q, q.clone())):
        assert kernel.max() <= 1 and kernel.min() >= 0


def test_only_tokens_by_themselves_have_an_exact_diagonal():
    """It is the call that says so, not whether two arguments are one tensor."""
    q = 1e3 * tokens(1, 2, 50, 8, dtype=torch.float32)
    diagonal = gaussian_kernel(q).diagonal(dim1=-2, dim2=-1)
    assert diagonal.equal(torch.ones_like(diagonal))
    assert gaussian_kernel(q, q).equal(gaussian_kernel(q, q.clone()))


@pytest.mark.parametrize('dtype', (torch.float16, torch.bfloat16))
def test_large_half_inputs(dtype):
    q = torch.full((1, 1, 3, 4), 300.0, dtype=dtype)  # |q|^2 overflows float16
    kernel = gaussian_kernel(q)
    assert kernel.dtype == torch.float32
    assert kernel.equal(torch.ones(1, 1, 3, 3))
    product = gaussian_product(q, q, q)
    assert product.dtype == torch.float32
    assert product.equal(torch.full((1, 1, 3, 4), 900.0))


@pytest.mark.usefixtures('block_entries')
@pytest.mark.parametrize('shape', SHAPES, ids=IDS)
def test_product(shape):
    q, k, v = inputs(shape)
    expected = paper_kernel(q, k) @ v
    torch.testing.assert_close(gaussian_product(q, k, v), expected)


@pytest.mark.usefixtures('block_entries')
@pytest.mark.parametrize('shape', SHAPES, ids=IDS)
def test_gradients(shape):
    args = [x.requires_grad_() for x in inputs(shape)]
    expected = paper_kernel(*args[:2]) @ args[2]
    grad = torch.randn_like(expected)
    torch.testing.assert_close(
        torch.autograd.grad(gaussian_product(*args), args, grad),
        torch.autograd.grad(expected, args, grad),
    )


@pytest.mark.usefixtures('block_entries')
@pytest.mark.parametrize('shape', SHAPES, ids=IDS)
def test_gradients_of_both_products(shape):
    q, k, v = (x.requires_grad_() for x in inputs(shape))
    kernel = paper_kernel(q, k)
    x = kernel @ v
    y, grad_x = torch.randn_like(x), torch.randn_like(x)
    out = kernel.mT @ y
    grad_out = torch.randn_like(out)
    with torch.no_grad():
        result = streaming.StreamedProducts().joint_grad(
            q, k, v, y, grad_x, grad_out, x, kernel @ grad_out
        )
    torch.testing.assert_close(
        result, torch.autograd.grad((x, out), (q, k, v), (grad_x, grad_out))
    )


@pytest.mark.parametrize('needed', range(3))
def test_gradient_of_one_input(needed):
    args = list(inputs((1, 2, 9, 4, 3, 2)))
    args[needed].requires_grad_()
    assert gradcheck(gaussian_product, args)


def test_views_and_autocast():
    """Heads as the projections leave them: (B, N, h, d) seen as (B, h, N, d)."""
    q, k, v = (
        tokens(2, n, 3, 5, dtype=torch.float32).transpose(1, 2) for n in (40, 7, 7)
    )
    expected = paper_kernel(q, k) @ v
    with torch.autocast('cpu', torch.bfloat16):
        torch.testing.assert_close(gaussian_product(q, k, v), expected)


class Largest(TorchDispatchMode):
    """Entries of the largest tensor that an operation makes."""

    entries = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor):
            self.entries = max(self.entries, out.numel())
        return out


@pytest.mark.parametrize('rows, columns', ((3000, 20), (20, 3000)))
def test_memory(rows, columns, monkeypatch):
    """Nothing is as large as the kernel matrix, neither forward nor backward."""
    monkeypatch.setattr(streaming, '_BLOCK_ENTRIES', 1000)
    q, k, v = (x.requires_grad_() for x in inputs((1, 1, rows, columns, 4, 4)))
    with Largest() as largest:
        gaussian_product(q, k, v).sum().backward()
    assert 1000 <= largest.entries <= 3000 * 6  # tokens with their squared norms


@pytest.mark.parametrize(
    'wrong',
    (
        dict(q=(1, 2, 5)),
        dict(q=(1, 3, 5, 4)),
        dict(k=(1, 2, 7, 3)),
        dict(v=(1, 2, 6, 4)),
        dict(v=(2, 2, 7, 4)),
    ),
    ids=str,
)
def test_wrong_shapes(wrong):
    shapes = dict(q=(1, 2, 5, 4), k=(1, 2, 7, 4), v=(1, 2, 7, 4))
    shapes.update(wrong)
    message = '.*'.join(str(shape) for shape in shapes.values())
    message = message.replace('(', r'\(').replace(')', r'\)')
    with pytest.raises(ValueError, match=message):
        gaussian_product(*(tokens(*shape) for shape in shapes.values()))


def test_kernels_can_be_forced(monkeypatch):
    q = tokens(1, 1, 3, 2)
    monkeypatch.setenv('MMLINATTN_KERNELS', 'triton')
    with pytest.raises(RuntimeError, match='float64 on cpu'):
        gaussian_product(q, q, q)
    monkeypatch.setenv('MMLINATTN_KERNELS', 'cuda')
    with pytest.raises(ValueError, match="MMLINATTN_KERNELS.*'torch', got 'cuda'"):
        gaussian_product(q, q, q)
    monkeypatch.setenv('MMLINATTN_KERNELS', 'torch')
    torch.testing.assert_close(gaussian_product(q, q, q), paper_kernel(q, q) @ q)
