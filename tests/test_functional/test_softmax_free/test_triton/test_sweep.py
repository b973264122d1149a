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
sweep = pytest.importorskip('mmlinattn.functional.softmax_free.triton.sweep')

pytestmark = [pytest.mark.modern, pytest.mark.gpu]

PRODUCTS = sweep.TritonProducts()
# B, h, M, N, d, e
SHAPES = (
    (1, 1, 1, 1, 1, 1),
    (1, 1, 1, 33, 5, 7),
    (2, 3, 17, 130, 32, 32),
    (1, 2, 65, 130, 33, 7),
    (2, 1, 130, 33, 32, 32),
    (1, 1, 17, 33, 20, 133),  # more channels than a block takes
)
# largest error by the largest entry; half precision is exact, its products are not
TOLERANCES = {torch.float32: 2e-6, torch.float16: 1e-3, torch.bfloat16: 1e-3}


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
    monkeypatch.setattr(sweep, '_num_multiprocessors', lambda x: 1000)
    monkeypatch.setattr(sweep, '_MIN_COLUMNS', 48)


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


def assert_right(a, b, v, grad, tolerance=TOLERANCES[torch.float32], parts=None):
    product, grads = explicit(a, b, v, grad)
    products = sweep.TritonProducts(parts)
    ours = products.product(a, b, v), *products.product_grad(a, b, v, grad)
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


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16])
def test_half_precision_in_two_parts(dtype, device):
    """Operands that are exact, and a matrix that is rounded as float32 is."""
    assert_right(*operands((1, 2, 65, 130, 33, 7), device, dtype), parts=2)


def test_one_part_of_a_float32_product(device):
    a, b, v, grad = operands((1, 2, 17, 130, 8, 7), device)
    assert_right(a, b, v, grad, TOLERANCES[torch.float16], parts=1)


@pytest.mark.parametrize('factor', [1e-30, 1e30])
def test_weights_of_any_size(factor, device):
    """Channels a million times apart keep their digits side by side."""
    a, b, v, grad = operands((1, 2, 17, 33, 8, 8), device)
    apart = torch.logspace(-6, 6, 8, device=device)
    v, grad = v * apart, grad / apart
    product, grads = explicit(a, b, v, grad)
    found = PRODUCTS.product(a, b, factor * v) / factor
    torch.testing.assert_close(found / apart, (product / apart).float())
    found = PRODUCTS.product_grad(a, b, factor * v, grad / factor)
    torch.testing.assert_close(found[2] * factor * apart, (grads[2] * apart).float())
    for ours, right in zip(found[:2], grads[:2]):
        torch.testing.assert_close(ours, right.float(), rtol=1e-4, atol=1e-5)


def test_tokens_of_any_size(device):
    """Those beyond float16 are far from all others; the others stay right."""
    a, b, v, _ = operands((1, 1, 17, 33, 8, 7), device)
    a[0, 0, 3, 1], b[0, 0, 5, 2] = 1e5, -1e30
    product, _ = explicit(a, b, v, torch.ones(1, 1, 17, 7, device=device))
    found = PRODUCTS.product(a, b, v)
    assert found[0, 0, 3].eq(0).all()
    torch.testing.assert_close(found, product.float(), rtol=0, atol=1e-5)


def test_graphs_stay_whole(device):
    """The products are one operator each to torch.compile."""
    if not hasattr(torch.compiler, 'is_compiling'):
        pytest.skip('needs torch 2.3 or later')
    inputs = operands((1, 1, 17, 33, 8, 7), device)

    def both(a, b, v, grad):
        return (PRODUCTS.product(a, b, v), *PRODUCTS.product_grad(a, b, v, grad))

    compiled = torch.compile(both, fullgraph=True, backend='aot_eager')
    assert all(map(torch.equal, compiled(*inputs), both(*inputs)))


@pytest.mark.parametrize('dtype', TOLERANCES)
def test_columns_in_pieces(dtype, device, many_splits):
    inputs = operands((2, 1, 17, 130, 8, 7), device, dtype)
    assert sweep._split_columns(130, 32, 2, 1000) == (64, 3)
    assert_right(*inputs, TOLERANCES[dtype])


@pytest.mark.parametrize('value_dim', (7, 65))  # a block takes 128
def test_both_products_at_once(value_dim, device):
    a, b, v, grad_x = operands((1, 2, 17, 66, 8, value_dim), device)
    y, grad_out = torch.randn_like(grad_x), torch.randn_like(v)
    x, of_x = explicit(a, b, v, grad_x)
    _, of_out = explicit(b, a, y, grad_out)
    expected = of_x[0] + of_out[1], of_x[1] + of_out[0], of_x[2]
    result = PRODUCTS.joint_grad(a, b, v, y, grad_x, grad_out, x, of_out[2])
    for found, right in zip(result, expected):
        torch.testing.assert_close(
            found.double(), right, rtol=0, atol=1e-5 * right.abs().max().item()
        )


def test_pieces_fill_a_gpu():
    # few landmarks against many tokens, and the reverse; 4 * 132 programs at a time
    chunk, splits = sweep._split_columns(67200, 32, 34, 132)
    assert 0.95 * 528 <= splits * 34 <= 528
    assert chunk % 32 == 0 and chunk * (splits - 1) < 67200 <= chunk * splits
    assert sweep._split_columns(1050, 32, 2100, 132) == (1056, 1)
    # 1.1 waves would take as long as 2: rather 2.2 in 3, each shorter
    chunk, splits = sweep._split_columns(67200, 32, 580, 132)
    waves = -(-580 * splits // 528)
    assert waves * chunk < 1.3 * 67200 * 580 / 528


def test_any_strides(device, many_splits):
    a, b, v, grad = operands((2, 2, 17, 66, 8, 7), device)
    # heads beside channels, as a projection leaves them
    tokens = torch.cat((b, v), -1).transpose(1, 2).contiguous()
    b, v = tokens.transpose(1, 2).split((8, 7), -1)
    assert b.stride(-1) == 1 and not b.is_contiguous()
    a = a.mT.contiguous().mT
    assert_right(a, b, v, grad)
    # what a sum sends back
    assert_right(a, b, v, torch.ones_like(grad[:1, :1, :1, :1]).expand_as(grad))


def test_same_result_every_time(device, many_splits):
    a, b, v, grad = operands((1, 2, 33, 66, 8, 7), device)
    first, second = (PRODUCTS.product_grad(a, b, v, grad) for _ in 'ab')
    assert all(map(torch.equal, first, second))


def test_weights_keep_their_precision(device):
    a, b, v, grad = operands((1, 2, 17, 33, 8, 7), device)
    assert_right(a.half(), b.half(), v, grad)


def test_sums_beyond_float16(device):
    a, b, v, _ = operands((1, 2, 17, 130, 8, 7), device, torch.float16)
    product = PRODUCTS.product(a / 10, b / 10, v.abs() + 1000)
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
    assert PRODUCTS.product(*inputs[:3]).shape == (0, 2, 17, 7)
    grads = PRODUCTS.product_grad(*inputs)
    assert [g.shape for g in grads] == [x.shape for x in inputs[:3]]


def test_no_entry_above_one(device):
    # far from 0, where rounding makes distances negative
    a = 100 * torch.randn(1, 4, 65, 32, device=device)
    product = PRODUCTS.product(a, a, torch.ones_like(a))
    assert product.max() <= 1


def test_nan_stays_nan(device):
    a, b, v, _ = operands((1, 1, 17, 33, 8, 7), device)
    a[0, 0, 3] = float('nan')
    product = PRODUCTS.product(a, b, v)
    assert product.isnan().any(-1).flatten().nonzero().tolist() == [[3]]


def attention_operands(device, dtype, head_dim=8):
    """q, landmarks far enough apart for Newton to converge, v, and a gradient."""
    landmarks, q, v, _ = operands((1, 2, 9, 65, head_dim, head_dim), device)
    q, landmarks = 2 * q, 2 * landmarks
    return [x.to(dtype) for x in (q, landmarks, v, torch.randn_like(v))]


def attention_and_gradients(q, landmarks, v, grad, **options):
    inputs = [x.clone().requires_grad_() for x in (q, landmarks, v)]
    out = softmax_free_attention(*inputs, **options)
    return (out.detach(), *torch.autograd.grad(out, inputs, grad))


def errors(results, expected):
    """By the norm."""
    return [
        ((x.double() - right).norm() / right.norm()).item()
        for x, right in zip(results, expected)
    ]


def test_attention_takes_the_kernels(device, monkeypatch):
    """Under its own switch, and with gradients through both products."""
    inputs = attention_operands(device, torch.float32)
    results = []
    for choice in ('auto', 'triton', 'torch'):
        monkeypatch.setenv('MMLINATTN_KERNELS', choice)
        kernels_run = isinstance(pick_products(*inputs[:3]), sweep.TritonProducts)
        assert kernels_run == (choice != 'torch')
        results.append(attention_and_gradients(*inputs, ridge=0.1, keep_kernel=False))
    torch.testing.assert_close(results[0], results[1])
    torch.testing.assert_close(results[0], results[2], rtol=1e-4, atol=1e-4)


# rounding to the dtype is the first figure, P in one half the other
@pytest.mark.parametrize(
    'dtype, tolerance', [(torch.bfloat16, 3e-3), (torch.float16, 6e-4)]
)
@pytest.mark.parametrize('float32_landmarks', (False, True))
def test_attention_of_half_precision(dtype, tolerance, float32_landmarks, device):
    """The operands as they are, landmarks in float32 behind a LayerNorm on a GPU."""
    q, landmarks, v, grad = attention_operands(device, dtype)
    if float32_landmarks:
        landmarks = landmarks.float() + 1e-4
    inputs = q, landmarks, v, grad
    expected = attention_and_gradients(*(x.double() for x in inputs))
    results = attention_and_gradients(*inputs)
    assert [x.dtype for x in results] == [x.dtype for x in (v, q, landmarks, v)]
    assert max(errors(results, expected)) < tolerance


@pytest.mark.parametrize('halves, least, most', [(1, 1e-5, 1e-3), (2, 0, 1e-5)])
def test_halves(halves, least, most, device):
    """One costs some digits, two cost none: values in float32 show them."""
    q, landmarks, v, grad = attention_operands(device, torch.float16)
    inputs = q, landmarks, v.float(), grad.float()
    expected = attention_and_gradients(*(x.double() for x in inputs))
    results = attention_and_gradients(*inputs, halves=halves)
    # q's gradient is rounded to its own dtype, as the landmarks' is
    assert least <= errors(results, expected)[0] < most
    assert least <= errors(results, expected)[3] < most


@pytest.mark.parametrize('normalize, halves', [(True, 1), (False, 2)])
def test_default_halves(normalize, halves, device):
    """SOFT, which has larger numbers and a worse condition, gets two."""
    inputs = attention_operands(device, torch.float16)
    options = dict(normalize=normalize, ridge=0.01)
    results = attention_and_gradients(*inputs, **options)
    explicit = attention_and_gradients(*inputs, **options, halves=halves)
    other = attention_and_gradients(*inputs, **options, halves=3 - halves)
    assert all(map(torch.equal, results, explicit))
    assert not any(map(torch.equal, results, other))
