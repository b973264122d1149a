"""Where values of a tensor may be read, and where a function needs no autograd."""

from types import SimpleNamespace

import torch
from torch.autograd import Function

from mmlinattn.functional.tracing import apply, can_read_values


def test_values_can_be_read_outside_of_recordings(monkeypatch):
    seen = []

    def look(x):
        seen.append(can_read_values(x))
        return 2 * x

    x = torch.ones(2, 3)
    look(x)
    torch.func.vmap(look)(x)
    torch.jit.trace(look, x, check_trace=False)
    look(x.to('meta'))
    assert seen == [True, False, False, False]
    on_gpu = SimpleNamespace(is_meta=False, is_cuda=True)
    for captures in (True, False):
        monkeypatch.setattr(torch.cuda, 'is_current_stream_capturing', [captures].pop)
        assert can_read_values(on_gpu) is not captures


def test_functions_are_nodes_of_a_graph_only_where_they_learn():
    learnings = []

    class Double(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return 2 * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            learnings.append(inputs[0].requires_grad)

        @staticmethod
        def tangent(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad

    x = torch.ones(2, requires_grad=True)
    apply(Double, x.detach())
    with torch.no_grad():
        apply(Double, x)
    assert not learnings
    apply(Double, x).sum().backward()
    assert learnings == [True] and x.grad.tolist() == [2, 2]
