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
@pytest.mark.parametrize('shift_size', (0, 1))
@pytest.mark.parametrize('hw_shape', ((8, 12), (9, 5), (4, 4), (4, 11), (3, 2)))
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


def test_state_dict_has_parameters_alone():
    module = build()
    assert module.state_dict().keys() == dict(module.named_parameters()).keys()
    assert module.relative_position_bias_table.shape == (49, 3)
