"""Legend: B batch, h heads, N = H * W tokens, s side of a window."""

import math

import pytest
import torch
from torch import nn

from mmlinattn.models import WindowAttention

pytestmark = pytest.mark.modern


def build(window_size=4, **options):
    module = WindowAttention(12, 3, window_size=window_size, **options)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)
    return module.double().eval()


def dense_attention(module, x, hw_shape):
    """Swin's definition over all pairs of tokens of the padded map."""
    side = module.window_size
    shift = module.shift_size if min(hw_shape) > side else 0
    height, width = (math.ceil(length / side) * side for length in hw_shape)
    maps = nn.functional.pad(
        x.unflatten(1, hw_shape),
        (0, 0, 0, width - hw_shape[1], 0, height - hw_shape[0]),
    )
    row, col = (
        index.flatten()
        for index in torch.meshgrid(
            torch.arange(height), torch.arange(width), indexing='ij'
        )
    )
    # where the cyclic shift puts a token, and whether it came from the other end
    new_row, new_col = (row - shift) % height, (col - shift) % width
    window = new_row // side * width + new_col // side
    region = 2 * (row < shift) + (col < shift)
    inside = window[:, None] == window
    torn = region[:, None] != region
    distance = [index[:, None] - index for index in (new_row, new_col)]
    entry = (distance[0] + side - 1) * (2 * side - 1) + distance[1] + side - 1
    bias = module.relative_position_bias_table[entry.where(inside, 0)]

    parts = module.qkv(maps.flatten(1, 2)).split(12, -1)
    # one projection for queries and keys comes first
    q, k, v = (module.split_heads(part) for part in (parts[0], parts[-2], parts[-1]))
    logits = q @ k.mT / module.head_dims**0.5 + bias.permute(2, 0, 1)
    logits = (logits - 100 * torn).where(inside, logits.new_tensor(-torch.inf))
    weights = logits.softmax(-1)
    if module.omega is not None:
        low = inside.double() / side**2
        weights = low + (1 + module.omega[:, None, None]) * (weights - low)
    out = module.proj(module.merge_heads(weights @ v)).unflatten(1, (height, width))
    return out[:, : hw_shape[0], : hw_shape[1]].flatten(1, 2)


def assert_close(result, expected):
    assert (result - expected).abs().max() <= 1e-6 * expected.abs().max()


@pytest.mark.parametrize('attn_scale', (False, True))
@pytest.mark.parametrize(
    'options', (dict(), dict(qkv_bias=False), dict(shared_qk=True)), ids=str
)
@pytest.mark.parametrize('shift_size', (0, 1, 2))
@pytest.mark.parametrize('hw_shape', ((8, 12), (9, 5), (4, 4), (4, 11), (3, 2), (1, 9)))
def test_matches_the_dense_form(hw_shape, shift_size, options, attn_scale):
    module = build(shift_size=shift_size, attn_scale=attn_scale, **options)
    x = torch.randn(2, math.prod(hw_shape), 12, dtype=torch.float64)
    x.requires_grad = True
    inputs = [x, *module.parameters()]
    out, expected = module(x, hw_shape), dense_attention(module, x, hw_shape)
    assert_close(out, expected)
    weight = torch.randn_like(out)
    for result, want in zip(
        *(torch.autograd.grad((y * weight).sum(), inputs) for y in (out, expected))
    ):
        assert_close(result, want)


def reach(module, hw_shape):
    """The matrix (N, N) of which token sees which."""
    x = torch.randn(1, math.prod(hw_shape), 12, dtype=torch.float64)
    x.requires_grad = True
    rows = [
        torch.autograd.grad(token.sum(), x, retain_graph=True)[0].abs().sum(-1)[0]
        for token in module(x, hw_shape)[0]
    ]
    return torch.stack(rows) > 1e-12


def test_windows_are_separate():
    seen = reach(build(), (8, 8))
    row, col = torch.arange(64) // 8 // 4, torch.arange(64) % 8 // 4
    assert seen.equal((row[:, None] == row) & (col[:, None] == col))


def test_shifted_windows_do_not_join_the_ends_of_the_map():
    seen = reach(build(shift_size=2), (8, 8))
    row, col = (
        (2 + index) // 4 for index in (torch.arange(64) // 8, torch.arange(64) % 8)
    )
    assert seen.equal((row[:, None] == row) & (col[:, None] == col))


@pytest.mark.parametrize('hw_shape', ((4, 4), (4, 9), (3, 5), (2, 2)))
def test_map_of_one_window_is_not_shifted(hw_shape):
    plain, shifted = build(), build(shift_size=2)
    shifted.load_state_dict(plain.state_dict())
    x = torch.randn(2, math.prod(hw_shape), 12, dtype=torch.float64)
    assert shifted(x, hw_shape).equal(plain(x, hw_shape))


def test_mask_from_inference_serves_training():
    module = build(shift_size=1)
    x = torch.randn(1, 6 * 10, 12, dtype=torch.float64)
    with torch.inference_mode():
        expected = module(x, (6, 10))
    out = module.train()(x, (6, 10))
    out.sum().backward()
    assert_close(out, expected)
    assert module.relative_position_bias_table.grad.any()


def test_state_dict_has_parameters_alone():
    module = build()
    assert module.state_dict().keys() == dict(module.named_parameters()).keys()
    assert module.relative_position_bias_table.shape == (49, 3)


@pytest.mark.parametrize(
    'options, message',
    (
        (dict(shift_size=4), 'shift_size must be in 0...3 for window_size=4, got 4'),
        (dict(shift_size=-1), 'shift_size.*-1'),
        (dict(window_size=0), 'window_size=0'),
    ),
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        build(**options)


@pytest.mark.parametrize(
    'hw_shape, message',
    (((5, 5), 'bound to the map.*N=24.*5, 5'), ((0, 24), 'not empty.*0, 24')),
)
def test_wrong_maps(hw_shape, message):
    with pytest.raises(ValueError, match=message):
        build()(torch.randn(1, 24, 12, dtype=torch.float64), hw_shape)
