"""A drop-in for PyTorch's attention."""

import pytest
import torch
from torch import nn

from mmlinattn.models import MultiheadSelfAttention


@torch.no_grad()
def test_softmax_attention_is_pytorchs():
    """With the same weights, batch first or not, padding included."""
    theirs = nn.MultiheadAttention(24, 4).eval()
    attention = dict(type='SoftmaxAttention')
    ours = MultiheadSelfAttention(24, 4, attention).eval()
    ours.attn.qkv.weight.copy_(theirs.in_proj_weight)
    ours.attn.qkv.bias.copy_(theirs.in_proj_bias.normal_())
    ours.attn.proj.load_state_dict(theirs.out_proj.state_dict())
    x = torch.randn(9, 3, 24)
    mask = torch.tensor([9, 6, 6])[:, None] <= torch.arange(9)
    least = -torch.inf, -1e9, torch.finfo(torch.float32).min
    biases = [torch.zeros(3, 9).masked_fill(mask, x) for x in least]
    for padding in (None, mask, *biases):
        out, weights = ours(x, x, x, key_padding_mask=padding)
        expected, _ = theirs(x, x, x, key_padding_mask=padding)
        if padding is not None:
            expected = expected.masked_fill(mask.T[..., None], 0)
        assert weights is None
        torch.testing.assert_close(out, expected)
    ours.batch_first = True
    out, _ = ours(x.transpose(0, 1))
    torch.testing.assert_close(out.transpose(0, 1), theirs(x, x, x)[0])


def test_in_an_encoder_layer():
    """PyTorch's layer takes it, in training and in eval mode."""
    layer = nn.TransformerEncoderLayer(24, 4, 48, dropout=0, batch_first=True)
    layer.self_attn = MultiheadSelfAttention(
        24, 4, dict(type='MLLAAttention'), batch_first=True
    )
    x = torch.randn(2, 7, 24)
    mask = torch.arange(7) >= torch.tensor([[7], [4]])
    trained = layer(x, src_key_padding_mask=mask)
    trained.sum().backward()
    assert all(p.grad is not None for p in layer.parameters())
    torch.testing.assert_close(layer.eval()(x, src_key_padding_mask=mask), trained)
    torch.testing.assert_close(layer(x[1:, :4])[0], trained[1, :4])


@pytest.mark.parametrize(
    'options, message',
    (
        (dict(key=torch.ones(6, 1, 8)), 'no cross-attention'),
        (dict(attn_mask=torch.zeros(6, 6)), 'attn_mask must be None'),
        (dict(is_causal=True), 'is_causal False'),
        (dict(key_padding_mask=torch.ones(1, 6).bool()), r'hw_shape=\(2, 3\)'),
    ),
)
def test_refused(options, message):
    module = MultiheadSelfAttention(8, 2, hw_shape=(2, 3))
    assert module(torch.ones(6, 1, 8))[0].shape == (6, 1, 8)
    with pytest.raises(ValueError, match=r'three axes, got \(6, 8\)'):
        module(torch.ones(6, 8))
    with pytest.raises(ValueError, match=message):
        module(torch.ones(6, 1, 8), **options)


@pytest.mark.parametrize(
    'mask, message',
    (
        (torch.ones(2, 5, dtype=torch.uint8), 'bool or float, got torch.uint8'),
        (torch.zeros(2, 5, dtype=torch.int64), 'bool or float, got torch.int64'),
        (torch.full((2, 5), -3.0), 'has -3: .* takes no biases'),
        (torch.full((2, 5), torch.nan), 'has nan'),
        (torch.full((2, 5), torch.inf), 'has inf'),
        (torch.zeros(5), r'must be \(B, N\) = \(2, 5\), got \(5,\)'),
        (torch.zeros(1, 5).bool(), r'got \(1, 5\)'),
    ),
)
def test_masks_of_other_kinds(mask, message):
    """They are refused, not taken for none."""
    module = MultiheadSelfAttention(8, 2, batch_first=True)
    with pytest.raises(ValueError, match=message):
        module(torch.ones(2, 5, 8), key_padding_mask=mask)
