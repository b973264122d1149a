"""Run for real on a GPU; elsewhere in the interpreter, by test_interpreter.py.

Legend: B batch, h heads, M rows, N columns, d head dim, e value dim.
"""

import os

import pytest
import torch

from mmlinattn.functional import softmax_free_attention
from mmlinattn.functional.softmax_free.products import pick_products
from mmlinattn.functional.softmax_free.triton import available

pytest.importorskip('triton', minversion='3.0')
gaussian = pytest.importorskip('mmlinattn.functional.softmax_free.triton.sweep')

pytestmark = [pytest.mark.modern, pytest.mark.gpu]

# B, h, M, N, d, e
SHAPES = (
    (1, 1, 1, 1, 1, 1),
    (1, 1, 1, 33, 5, 7),
    (2, 3, 17, 130, 32, 32),
    (1, 2, 65, 130, 33, 7),
    (2, 1, 130, 33, 32, 32),
    (1, 1, 17, 33, 20, 100),
)
# largest error by the largest entry
TOLERANCES = {torch.float32: 1e-5, torch.float16: 1e-3, torch.bfloat16: 1e-2}


@pytest.fixture(autouse=True)
def device():
    device = 'cpu' if os.environ.get('TRITON_INTERPRET') == '1' else 'cuda'
    if device == 'cuda' and not torch.cuda.is_available():
        pytest.skip('needs a GPU; test_interpreter.py runs it without')
    if not available(torch.empty(1, device=device)):
        pytest.skip('needs a GPU of compute capability 8.0 or later')
    return device


@pytest.fixture
def many_splits(monkeypatch):
    monkeypatch.setattr(gaussian, '_num_multiprocessors', lambda x: 1000)
    monkeypatch.setattr(gaussian, '_MIN_COLUMNS', 48)


def operands(shape, device, dtype=torch.float32):
    """a, b, v and the gradient of the product; distances about 1."""
    batch, heads, m, n, d, e = shape
    shapes = (m, d), (n, d), (n, e), (m, e)
    a, b, v, grad = (torch.randn(batch, heads, *s, device=device) for s in shapes)
    return [x.to(dtype) for x in (a / d**0.5, b / d**0.5, v, grad)]


def explicit(a, b, v, grad):
    """The product and its gradients, all entries of K at once, in float64."""
    a, b, v = (x.double().requires_grad_() for x in (a, b, v))
    distance = (a.unsqueeze(-2) - b.unsqueeze(-3)).square().sum(-1)
    product = (-distance / 2).exp() @ v
    return product, torch.autograd.grad(product, (a, b, v), grad.double())


def assert_right(a, b, v, grad, tolerance=TOLERANCES[torch.float32]):
    product, grads = explicit(a, b, v, grad)
    ours = [gaussian.gaussian_product(a, b, v)]
    ours += gaussian.gaussian_product_grad(a, b, v, grad)
    for result, right in zip(ours, (product, *grads)):
        assert result.dtype == torch.float32
        torch.testing.assert_close(
            result.double(),
            right,
            rtol=0,
            atol=tolerance * max(1, right.abs().max().item()),
        )


@pytest.mark.parametrize('dtype', TOLERANCES)
@pytest.mark.parametrize('shape', SHAPES)
def test_equals_the_explicit_matrix(shape, dtype, device):
    assert_right(*operands(shape, device, dtype), TOLERANCES[dtype])


@pytest.mark.parametrize('dtype', TOLERANCES)
def test_columns_in_pieces(dtype, device, many_splits):
    inputs = operands((2, 1, 17, 130, 8, 7), device, dtype)
    assert gaussian._split_columns(130, 32, 2, 1000) == (64, 3)
    assert_right(*inputs, TOLERANCES[dtype])


@pytest.mark.parametrize('value_dim', (7, 65))  # 2 * 65 does not fit a block
def test_both_products_at_once(value_dim, device):
    a, b, v, grad_x = operands((2, 3, 17, 130, 8, value_dim), device)
    y, grad_out = torch.randn_like(grad_x), torch.randn_like(v)
    x, of_x = explicit(a, b, v, grad_x)
    _, of_out = explicit(b, a, y, grad_out)
    expected = of_x[0] + of_out[1], of_x[1] + of_out[0], of_x[2]
    result = gaussian.both_products_grad(a, b, v, y, grad_x, grad_out, x, of_out[2])
    for found, right in zip(result, expected):
        torch.testing.assert_close(
            found.double(), right, rtol=0, atol=1e-5 * right.abs().max().item()
        )


def test_pieces_fill_a_gpu():
    # few landmarks against many tokens, and the reverse
    chunk, splits = gaussian._split_columns(67200, 32, 34, 132)
    assert splits * 34 >= 4 * 132
    assert chunk % 32 == 0 and chunk * (splits - 1) < 67200 <= chunk * splits
    assert gaussian._split_columns(1050, 32, 2100, 132) == (1056, 1)


def test_any_strides(device, many_splits):
    a, b, v, grad = operands((2, 3, 17, 130, 8, 7), device)
    # heads beside channels, as a projection leaves them
    tokens = torch.cat((b, v), -1).transpose(1, 2).contiguous()
    b, v = tokens.transpose(1, 2).split((8, 7), -1)
    assert b.stride(-1) == 1 and not b.is_contiguous()
    a = a.mT.contiguous().mT
    assert_right(a, b, v, grad)
    # what a sum sends back
    assert_right(a, b, v, torch.ones_like(grad[:1, :1, :1, :1]).expand_as(grad))


def test_same_result_every_time(device, many_splits):
    a, b, v, grad = operands((1, 2, 65, 130, 32, 32), device)
    first, second = (gaussian.gaussian_product_grad(a, b, v, grad) for _ in 'ab')
    assert all(map(torch.equal, first, second))


def test_weights_keep_their_precision(device):
    a, b, v, grad = operands((1, 2, 17, 33, 8, 7), device)
    assert_right(a.half(), b.half(), v, grad)


def test_sums_beyond_float16(device):
    a, b, v, _ = operands((1, 2, 17, 130, 8, 7), device, torch.float16)
    product = gaussian.gaussian_product(a / 10, b / 10, v.abs() + 1000)
    assert product.isfinite().all() and product.min() > 65504


def test_gradients_under_a_loss_scale(device):
    a, b, v, grad = operands((1, 2, 17, 130, 8, 7), device, torch.float16)
    grad = 1e6 * grad.float()
    grad[:, 1] = 0
    assert_right(a, b, v, grad, TOLERANCES[torch.float16])


def test_offsets_beyond_32_bits(device):
    a, b, v, grad = operands((1, 1, 17, 3, 8, 7), device)
    far = torch.empty(2**31 + 8, dtype=torch.float16, device=device)
    far = far.as_strided((1, 1, 3, 8), (0, 0, 2**30, 1))
    assert_right(a, far.copy_(b), v, grad)


def test_empty_batch(device):
    inputs = operands((0, 2, 17, 3, 8, 7), device)
    assert gaussian.gaussian_product(*inputs[:3]).shape == (0, 2, 17, 7)
    grads = gaussian.gaussian_product_grad(*inputs)
    assert [g.shape for g in grads] == [x.shape for x in inputs[:3]]


def test_no_entry_above_one(device):
    # far from 0, where rounding makes distances negative
    a = 100 * torch.randn(1, 4, 65, 32, device=device)
    product = gaussian.gaussian_product(a, a, torch.ones_like(a))
    assert product.max() <= 1


def test_nan_stays_nan(device):
    a, b, v, _ = operands((1, 1, 17, 33, 8, 7), device)
    a[0, 0, 3] = float('nan')
    product = gaussian.gaussian_product(a, b, v)
    assert product.isnan().any(-1).flatten().nonzero().tolist() == [[3]]


def test_attention_takes_the_kernels(device, monkeypatch):
    """Under its own switch, and with gradients through both products."""
    q, landmarks, v, _ = operands((1, 2, 65, 9, 8, 8), device)
    v = torch.randn_like(q)
    results = []
    for choice in ('auto', 'triton', 'torch'):
        monkeypatch.setenv('MMLINATTN_KERNELS', choice)
        inputs = [x.clone().requires_grad_() for x in (q, landmarks, v)]
        out = softmax_free_attention(*inputs, ridge=0.1, keep_kernel=False)
        kernels_run = isinstance(pick_products(q, v), gaussian.TritonProducts)
        assert kernels_run == (choice != 'torch')
        results.append((out, *torch.autograd.grad(out.square().sum(), inputs)))
    torch.testing.assert_close(results[0], results[1])
    torch.testing.assert_close(results[0], results[2], rtol=1e-4, atol=1e-4)
