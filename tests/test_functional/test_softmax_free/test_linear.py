"""Legend: B batch, h heads, N tokens, m landmarks, d head dim."""

import pytest
import torch
from equations import paper_kernel, relative_error, tokens
from torch.autograd import gradcheck, gradgradcheck

from mmlinattn.functional import linear_softmax_free_attention
from mmlinattn.functional.softmax_free import linear

# (H, W), side of the windows: incomplete ones, one larger than the map, the diagonal
MAPS = (((7, 9), 1), ((7, 9), 4), ((5, 6), 8), ((1, 12), 2), ((1, 1), 1))
PARTS = pytest.mark.parametrize('hw_shape, window', MAPS)
RIDGE = 1e-3


def same_window(hw_shape, window):
    """(N, N), whether two tokens are in one window."""
    rows, columns = (torch.arange(side) // window for side in hw_shape)
    windows = (rows[:, None] * 1000 + columns).flatten()
    return windows[:, None] == windows


def nystroem_kernel(q, landmarks):
    """P^T (A + rho m I)^-1 P on dense matrices."""
    p, m = paper_kernel(landmarks, q), landmarks.size(-2)
    a = paper_kernel(landmarks, landmarks) + RIDGE * m * torch.eye(m, dtype=p.dtype)
    return p.mT @ torch.linalg.inv(a) @ p


def plain_kernel(q, landmarks, hw_shape, window):
    """The kernel in windows, and the landmarks' beyond them."""
    exact = same_window(hw_shape, window)
    return torch.where(exact, paper_kernel(q, q), nystroem_kernel(q, landmarks))


def plain_attention(q, landmarks, v, hw_shape, window):
    kernel = plain_kernel(q, landmarks, hw_shape, window)
    return kernel @ v / kernel.sum(-1, keepdim=True).clamp(min=1)


def inputs_of(hw_shape, b=2, h=3, m=6, d=5):
    n = hw_shape[0] * hw_shape[1]
    return tokens(b, h, n, d), tokens(b, h, m, d), tokens(b, h, n, d)


@PARTS
def test_is_its_equation(hw_shape, window):
    inputs = inputs_of(hw_shape)
    expected = plain_attention(*inputs, hw_shape, window)

    def attend(*inputs):
        return linear_softmax_free_attention(*inputs, RIDGE, window, hw_shape)

    assert relative_error(attend(*inputs), expected) < 1e-12
    singles = [x.float() for x in inputs]
    assert relative_error(attend(*singles), expected) < 1e-5
    halves = [x.bfloat16() for x in inputs]
    expected = plain_attention(*(x.double() for x in halves), hw_shape, window)
    result = attend(*halves)
    assert result.dtype == torch.bfloat16
    assert relative_error(result, expected) < 4e-3  # its rounding


@PARTS
def test_kernel(hw_shape, window):
    """Of the operator itself, by values of all tokens: exact in windows, positive
    semi-definite, and rows of the exact kernel where no landmark is near."""
    q, landmarks, _ = inputs_of(hw_shape)
    eye = torch.eye(q.size(2), dtype=q.dtype).expand(2, 3, -1, -1)
    if window == 1:
        kernel = linear.with_exact_diagonal(q, landmarks, eye, RIDGE)
    else:
        kernel = linear.with_exact_windows(q, landmarks, eye, RIDGE, window, hw_shape)
    exact = same_window(hw_shape, window)
    difference = (kernel - paper_kernel(q, q)).masked_fill(~exact, 0)
    assert difference.abs().amax() < 1e-12
    assert torch.linalg.eigvalsh(kernel).amin() > -1e-12
    u, *_ = linear.nystroem_features(q, landmarks, RIDGE)
    assert u.norm(dim=-1).amax() < 1


@pytest.mark.parametrize('window', (1, 2))
def test_far_from_all_landmarks(window):
    """Such tokens attend to themselves, and a large uniform region takes nothing from
    them."""
    q, landmarks, v = inputs_of((4, 6), b=1, h=1)
    q[:, :, :20], landmarks[:] = 0.0, 0.0
    q[:, :, 20:] = 100 * torch.randn(4, 5, dtype=q.dtype)
    result = linear_softmax_free_attention(q, landmarks, v, RIDGE, window, (4, 6))
    torch.testing.assert_close(result[:, :, 20:], v[:, :, 20:])


@pytest.mark.parametrize('window', (1, 2))
def test_gradients(window):
    inputs = [x.requires_grad_() for x in inputs_of((3, 4), b=1, h=2, m=4, d=3)]

    def attend(*inputs):
        return linear_softmax_free_attention(*inputs, 1e-2, window, (3, 4))

    assert gradcheck(attend, inputs)
    assert gradgradcheck(attend, inputs)


def kept_bytes(window):
    """Of what a training keeps of the attention until its backward pass."""
    inputs = [x.requires_grad_() for x in inputs_of((28, 28), m=49, d=32)]
    storages = {}

    def keep(x):
        storage = x.untyped_storage()
        storages[storage.data_ptr()] = storage
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        linear_softmax_free_attention(*inputs, RIDGE, window, (28, 28))
    return sum(storage.nbytes() for storage in storages.values())


def test_memory_to_train():
    """The kernel in windows is not kept, which has more entries than the features."""
    assert kept_bytes(window=7) < 1.02 * kept_bytes(window=1)


@pytest.mark.parametrize('ridge', (1e-3, 1e-4))
@pytest.mark.parametrize('spread', (1e-3, 0.3, 10.0))
def test_root_in_files(spread, ridge):
    """Of matrices of a condition up to 1e4."""
    landmarks = spread * tokens(3, 49, 8)
    eye = torch.eye(49, dtype=torch.float64)
    a = paper_kernel(landmarks, landmarks) + 49 * ridge * eye
    for root in (linear.inverse_root(a), linear._inverse_square_root(a, eye)):
        assert relative_error(root.mT @ root @ a, eye.expand_as(a)) < 1e-10
