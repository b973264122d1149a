"""Rows of every registered attention make its output.

Legend: B batch, h heads, N tokens, M keys, C channels.
"""

import pytest
import torch
from equations import Largest
from torch import nn

from mmlinattn.analysis import attention_rows, watch
from mmlinattn.models import BaseAttention
from mmlinattn.registry import MODELS

ATTENTIONS = [
    name
    for name, x in MODELS.module_dict.items()
    if issubclass(x, BaseAttention) and x.linear_in_values
]


def build(name):
    """A module whose every parameter matters."""
    options = dict(type=name, embed_dims=24, num_heads=4)
    try:
        module = MODELS.build(dict(options, attn_scale=True))
    except ValueError:  # it has no attention map to sharpen
        module = MODELS.build(options)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module.double().eval()


def record(module, hw_shape=(14, 28)):
    """Arguments of ``attend`` for two random images."""
    calls = []
    x = torch.randn(2, hw_shape[0] * hw_shape[1], 24, dtype=torch.float64)
    with torch.no_grad(), watch(module, calls.append):
        module(x, hw_shape)
    (call,) = calls
    return call.q, call.k, call.v, call.hw_shape


@pytest.mark.parametrize('name', ATTENTIONS)
def test_rows_make_the_output(name):
    """Any change u of the values changes the output by A u."""
    module = build(name)
    q, k, v, hw_shape = record(module)
    # more than a backward pass gives, not in order, one of them twice
    queries = [i % q.size(1) for i in (3, 0, 134, 7, 7, 12, 333, 1, 200, 20)]
    rows = attention_rows(module, q, k, v, hw_shape, queries)
    dims = module.dims_of_heads
    changes = torch.randn_like(v).split(dims, -1)
    if not module.one_matrix_per_head:  # rows are means over the channels
        changes = [u[..., :1].expand_as(u) for u in changes]
    changed = module.attend(q, k, v + torch.cat(changes, -1), hw_shape)
    out = (changed - module.attend(q, k, v, hw_shape))[:, queries].split(dims, -1)
    assert rows.shape == (2, len(dims), len(queries), k.size(1))
    for head, (u, expected) in enumerate(zip(changes, out)):
        if not module.one_matrix_per_head:
            expected = expected.mean(-1, keepdim=True).expand_as(expected)
        torch.testing.assert_close(rows[:, head] @ u, expected)


def test_a_row_costs_what_a_forward_pass_costs():
    """No tensor is larger than the tokens and the kernel's blocks."""
    module = build('EfficientAttention')
    q, k, v, hw_shape = record(module, (50, 100))
    with Largest() as largest:
        attention_rows(module, q, k, v, hw_shape, [17])
    assert largest.entries <= v.numel()


def test_queries_and_mode():
    module = build('SoftmaxAttention')
    arguments = module, *record(module, (2, 3))
    assert attention_rows(*arguments, []).shape == (2, 4, 0, 6)
    with pytest.raises(ValueError, match=r'queries must be in 0\.\.\.5, got \[6, -1\]'):
        attention_rows(*arguments, [0, 6, -1])
    with pytest.raises(ValueError, match='TTTAttention has no attention matrix'):
        attention_rows(build('TTTAttention'), *arguments[1:], [0])
    module.train()
    with pytest.raises(ValueError, match=r'eval mode.*eval\(\)'):
        attention_rows(*arguments, [0])
